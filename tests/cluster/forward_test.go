package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

// A command of etcdctl, with its input. LEASE stands for the lease that was granted last, MEMBER for
// the member that was added last, DIR for a directory.
type command struct {
	line, input string
}

var commands = []command{
	{line: "put a 1"},
	{line: "put a 2 --prev-kv"},
	{line: "put b 3 -w json"},
	{line: "get a -w json"},
	{line: "get a z --keys-only"},
	{line: "get a --rev=2"},
	{line: "get a --rev=99"},
	{line: "txn", input: "mod(\"a\") > \"0\"\n\nput c 4\nget a\n\nput c 5\n\n"},
	{line: "txn", input: "value(\"a\") = \"other\"\n\nput c 4\n\ndel c\n\n"},
	{line: "txn", input: "\nput c 4\nput c 5\n\n\n"},
	{line: "del b -w json"},
	{line: "del none"},
	{line: "put --ignore-value none"},
	{line: "endpoint hashkv"},
	{line: "endpoint health"},
	{line: "compaction 3"},
	{line: "compaction 3"},
	{line: "compaction 999"},
	{line: "get a --rev=2"},
	{line: "lease grant 600"},
	{line: "put --lease=LEASE d 6"},
	{line: "lease timetolive LEASE --keys"},
	{line: "lease list"},
	{line: "lease keep-alive --once LEASE"},
	{line: "lease revoke LEASE"},
	{line: "lease revoke LEASE"},
	{line: "lease keep-alive --once LEASE"},
	{line: "put --lease=1234 e 7"},
	{line: "get d"},
	{line: "lock name echo held"},
	{line: "alarm list"},
	{line: "alarm disarm"},
	{line: "defrag"},
	{line: "member list -w json"},
	{line: "member add more --peer-urls=http://127.0.0.1:1"},
	{line: "member list"},
	{line: "member update MEMBER --peer-urls=http://127.0.0.1:2"},
	{line: "member remove MEMBER"},
	{line: "member remove 1234"},
	{line: "snapshot save DIR/snapshot"},
	{line: "role add role"},
	{line: "role add role"},
	{line: "role grant-permission role readwrite a"},
	{line: "role grant-permission role read b --prefix"},
	{line: "role get role"},
	{line: "role revoke-permission role a z"},
	{line: "user add user:pw"},
	{line: "user add root:pw"},
	{line: "user grant-role user role"},
	{line: "user grant-role root root"},
	{line: "user get user"},
	{line: "user list"},
	{line: "auth status"},
	{line: "auth enable"},
	{line: "put a 8"},
	{line: "get a"},
	{line: "--user=user:wrong put a 8"},
	{line: "--user=user:pw put a 8"},
	{line: "--user=user:pw get a"},
	{line: "--user=user:pw get bb"},
	{line: "--user=user:pw put b 9"},
	{line: "--user=user:pw get c"},
	{line: "--user=user:pw del c"},
	{line: "--user=user:pw user list"},
	{line: "--user=user:pw member list"},
	{line: "--user=user:pw snapshot save DIR/refused"},
	{line: "--user=root:pw user revoke-role user role"},
	{line: "--user=user:pw get a"},
	{line: "--user=root:pw role delete role"},
	{line: "--user=root:pw user delete user"},
	{line: "--user=user:pw get a"},
	{line: "--user=root:pw auth disable"},
	{line: "auth status"},
	{line: "get a -w json"},
}

// ctl is etcdctl of the members' version, with what it needs to remember.
type ctl struct {
	t             testing.TB
	binary        string
	endpoint, dir string
	lease, member string
	is34          bool
}

var (
	logLine        = regexp.MustCompile(`(?m)^\{"level".*\n?`)
	storageVersion = regexp.MustCompile(`Server version .*\n`) // of a snapshot; a member knows it only after a while
	varying        = regexp.MustCompile(`took[ =].*|127\.0\.0\.1:\d{4,5}| *\b[0-9a-f]{13,16}\b|\b\d{15,20}\b|"raft_term":\d+|/\S*/snapshot|\bm[0-2]\b`)
	leaseOf        = regexp.MustCompile(`lease ([0-9a-f]+) granted`)
	memberOf       = regexp.MustCompile(`Member\s+([0-9a-f]+) added`)
	remaining      = regexp.MustCompile(`remaining\(\d+s\)`)
)

func newCtl(t testing.TB, binary, endpoint string) *ctl {
	path := filepath.Join(filepath.Dir(binary), "etcdctl")
	return &ctl{t: t, binary: path, endpoint: endpoint, dir: t.TempDir(), is34: binary == harness.Debian}
}

// run returns the output without what differs from run to run.
func (c *ctl) run(cmd command) string {
	line := strings.NewReplacer("LEASE", c.lease, "MEMBER", c.member, "DIR", c.dir).Replace(cmd.line)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	run := exec.CommandContext(ctx, c.binary, append([]string{"--endpoints", c.endpoint}, strings.Fields(line)...)...)
	run.Env = []string{"ETCDCTL_API=3", "PATH=/usr/bin:/bin"}
	run.Stdin = strings.NewReader(cmd.input)
	out, err := run.CombinedOutput()
	text := string(out)
	if found := leaseOf.FindStringSubmatch(text); found != nil {
		c.lease = found[1]
	}
	if found := memberOf.FindStringSubmatch(text); found != nil {
		c.member = found[1]
	}
	text = storageVersion.ReplaceAllString(text, "")
	text = varying.ReplaceAllString(logLine.ReplaceAllString(text, ""), "~")
	lines := strings.Split(remaining.ReplaceAllString(text, "~"), "\n")
	if strings.Contains(line, "member list") {
		slices.Sort(lines) // they are in the order of the members' ids
	}
	for n, text := range lines {
		if list, found := strings.CutPrefix(text, "ETCD_INITIAL_CLUSTER="); found {
			members := strings.Split(strings.Trim(list, "\""), ",") // and so are these
			slices.Sort(members)
			lines[n] = strings.Join(members, ",")
		}
	}
	return fmt.Sprintf("%s%v", strings.Join(lines, "\n"), err)
}

// TestSameOutputOfEtcdctl gives the same commands to a cluster and to a front of another one.
func TestSameOutputOfEtcdctl(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		options := harness.ClusterOptions{Binary: binary,
			// Members may be added before the others have been connected for five seconds.
			Args: []string{"--bcrypt-cost", "4", "--strict-reconfig-check=false"}}
		alone := harness.NewCluster(t, options)
		started := make(chan struct{})
		go func() { alone.Start(); close(started) }()
		f := newFixture(t, options, harness.FrontOptions{})
		<-started
		direct := newCtl(t, binary, alone.Members[0].URL)
		via := newCtl(t, binary, f.front.URL)
		for _, cmd := range commands {
			if via.is34 && strings.HasPrefix(cmd.line, "auth status") {
				continue // it does not exist yet
			}
			outputs := [2]string{}
			var both sync.WaitGroup
			for n, c := range []*ctl{direct, via} {
				both.Add(1)
				go func() { defer both.Done(); outputs[n] = c.run(cmd) }()
			}
			both.Wait()
			if outputs[0] != outputs[1] {
				f.Errorf("etcdctl %s:\ndirect: %s\nvia:    %s", cmd.line, outputs[0], outputs[1])
			}
		}
	})
}

// TestLocksAndElectionsOfTheServer uses the services that wait on the server's side.
func TestLocksAndElectionsOfTheServer(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		conn := f.dial(f.front.Addr)
		lease, err := f.via.Grant(f.ctx, 600)
		f.must(err)
		f.locks(v3lockpb.NewLockClient(conn), int64(lease.ID))
		f.elections(v3electionpb.NewElectionClient(conn), int64(lease.ID))
	})
}

func (f *fixture) locks(locks v3lockpb.LockClient, lease int64) {
	f.Helper()
	held, err := locks.Lock(f.ctx, &v3lockpb.LockRequest{Name: []byte("lock"), Lease: lease})
	f.must(err)
	other, err := f.via.Grant(f.ctx, 600)
	f.must(err)
	// A client that leaves while it waits does not get the lock later.
	ctx, cancel := context.WithCancel(f.ctx)
	left := make(chan error)
	go func() {
		_, err := locks.Lock(ctx, &v3lockpb.LockRequest{Name: []byte("lock"), Lease: int64(other.ID)})
		left <- err
	}()
	waiting := func() int64 {
		found, err := f.direct.Get(f.ctx, "lock/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		f.must(err)
		return found.Count
	}
	f.eventually("a second claim", func() bool { return waiting() == 2 })
	cancel()
	if err := <-left; status.Code(err) != codes.Canceled {
		f.Errorf("a cancelled lock ends with %v", err)
	}
	f.eventually("the claim to be given up", func() bool { return waiting() == 1 })
	_, err = locks.Unlock(f.ctx, &v3lockpb.UnlockRequest{Key: held.Key})
	f.must(err)
	_, err = locks.Lock(f.ctx, &v3lockpb.LockRequest{Name: []byte("lock"), Lease: lease})
	f.must(err)
}

func (f *fixture) elections(elections v3electionpb.ElectionClient, lease int64) {
	f.Helper()
	name := []byte("election")
	_, err := elections.Leader(f.ctx, &v3electionpb.LeaderRequest{Name: name})
	if status.Convert(err).Message() != "election: no leader" {
		f.Errorf("a leader before the first campaign: %v", err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	observer, err := elections.Observe(ctx, &v3electionpb.LeaderRequest{Name: name})
	f.must(err)
	won, err := elections.Campaign(f.ctx, &v3electionpb.CampaignRequest{Name: name, Lease: lease, Value: []byte("1")})
	f.must(err)
	seen := func(value string) {
		f.Helper()
		leader, err := observer.Recv()
		f.must(err)
		f.wantSame("the observed leader", string(leader.Kv.Value), value)
	}
	seen("1")
	_, err = elections.Proclaim(f.ctx, &v3electionpb.ProclaimRequest{Leader: won.Leader, Value: []byte("2")})
	f.must(err)
	seen("2")
	_, err = elections.Resign(f.ctx, &v3electionpb.ResignRequest{Leader: won.Leader})
	f.must(err)
	cancel()
	if _, err := observer.Recv(); status.Code(err) != codes.Canceled {
		f.Errorf("a cancelled Observe ends with %v", err)
	}
}

// TestForwardedCalls has what can be seen on one cluster.
func TestForwardedCalls(t *testing.T) {
	t.Parallel()
	f := newPlain(t, harness.Peer())
	f.snapshot()
	f.members()
	f.renewals()
	f.deadlinesWithoutMajority()
}

// snapshot checks the digest with which a snapshot ends.
func (f *fixture) snapshot() {
	f.Helper()
	value := strings.Repeat("x", 1<<20)
	for n := range 24 {
		f.put(f.direct, fmt.Sprint("large/", n), value)
	}
	stream, err := f.via.Snapshot(f.ctx)
	f.must(err)
	defer stream.Close()
	content, err := io.ReadAll(stream)
	f.must(err)
	if len(content) < 24<<20 {
		f.Fatalf("the snapshot has %d bytes only", len(content))
	}
	file := content[:len(content)-sha256.Size]
	if sum := sha256.Sum256(file); !bytes.Equal(sum[:], content[len(file):]) {
		f.Error("the snapshot does not have its digest")
	}
}

// TestTheLeaderIsMoved also if the front is connected to other members.
func TestTheLeaderIsMoved(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		for range 4 {
			target := f.cluster.Follower()
			id := f.cluster.Status(target).Header.MemberId
			_, err := f.via.MoveLeader(f.ctx, id)
			f.must(err)
			f.eventually("the move", func() bool { return f.cluster.Status(target).Leader == id })
		}
	})
}

// members are shown with the address of the front, so that a client that looks them up stays there.
func (f *fixture) members() {
	f.Helper()
	client := f.client(f.front.URL)
	f.must(client.Sync(f.ctx))
	f.wantSame("endpoints after Sync", fmt.Sprint(client.Endpoints()),
		fmt.Sprint([]string{f.front.URL, f.front.URL, f.front.URL}))
	direct, err := f.direct.MemberList(f.ctx)
	f.must(err)
	via, err := f.via.MemberList(f.ctx)
	f.must(err)
	for n, member := range via.Members {
		f.wantSame("a member", fmt.Sprint(member.ID, member.Name, member.PeerURLs),
			fmt.Sprint(direct.Members[n].ID, direct.Members[n].Name, direct.Members[n].PeerURLs))
	}
}

// renewals of many clients use the few streams that the front has, also when they break.
func (f *fixture) renewals() {
	f.Helper()
	const clients = 200
	conn := f.dial(f.front.Addr)
	streams := [clients]pb.Lease_LeaseKeepAliveClient{}
	ids := [clients]int64{}
	for n := range streams {
		lease, err := f.direct.Grant(f.ctx, int64(100+n))
		f.must(err)
		ids[n] = int64(lease.ID)
		streams[n], err = pb.NewLeaseClient(conn).LeaseKeepAlive(f.ctx)
		f.must(err)
	}
	renew := func() {
		for n, stream := range streams {
			f.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: ids[n]}))
		}
		for n, stream := range streams {
			answer, err := stream.Recv()
			f.must(err)
			f.wantSame("a renewal", fmt.Sprint(answer.ID, answer.TTL), fmt.Sprint(ids[n], 100+n))
		}
	}
	for range 3 {
		renew()
		for _, member := range f.cluster.Members {
			member.Relay.CutAll()
		}
		renew()
	}
}

// deadlinesWithoutMajority are passed on, and so is the wish for a leader.
func (f *fixture) deadlinesWithoutMajority() {
	f.Helper()
	survivor := f.cluster.Follower()
	for _, member := range f.cluster.Members {
		if member != survivor {
			member.Kill()
		}
	}
	f.cluster.AwaitLoss(survivor)
	kv := pb.NewKVClient(f.dial(f.front.Addr))
	f.eventually("a refusal because there is no leader", func() bool {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(f.ctx, "hasleader", "true"), 20*time.Second)
		defer cancel()
		_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("k")})
		return status.Convert(err).Message() == "etcdserver: no leader"
	})
	ctx, cancel := context.WithTimeout(f.ctx, 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("k")})
	if status.Code(err) != codes.DeadlineExceeded || time.Since(begun) > 5*time.Second {
		f.Errorf("a put with a deadline of 300 ms ends after %v with %v", time.Since(begun), err)
	}
}
