// Package cluster has the tests of Vigil in front of a real etcd cluster: three members, two fronts,
// and everything that can fail between them.
package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"vigil/tests/harness"
	"vigil/tests/watch"
)

const testLimit = 90 * time.Second

// fixture is a cluster with a front, and clients of both.
type fixture struct {
	*testing.T
	cluster *harness.Cluster
	front   *harness.Front
	direct  *clientv3.Client // of the first member
	via     *clientv3.Client // of the front
	ctx     context.Context
}

// onEach runs a test on the pinned etcd and on Debian's. With -short only on the first.
func onEach(t *testing.T, run func(t *testing.T, binary string)) {
	t.Helper()
	t.Parallel()
	t.Run("3.7", func(t *testing.T) {
		t.Parallel()
		run(t, harness.Peer())
	})
	if !testing.Short() {
		t.Run("3.4", func(t *testing.T) {
			t.Parallel()
			run(t, harness.Debian)
		})
	}
}

func newFixture(t *testing.T, options harness.ClusterOptions, front harness.FrontOptions) *fixture {
	t.Helper()
	f := &fixture{T: t, cluster: harness.StartCluster(t, options)}
	f.front = harness.StartFront(f.cluster, front)
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	f.direct = f.client(f.cluster.Members[0].URL)
	f.via = f.client(f.front.URL)
	f.awaitSync(f.via)
	return f
}

func newPlain(t *testing.T, binary string) *fixture {
	t.Helper()
	return newFixture(t, harness.ClusterOptions{Binary: binary}, harness.FrontOptions{})
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) client(urls ...string) *clientv3.Client {
	f.Helper()
	return f.clientAs("", "", urls...)
}

func (f *fixture) clientAs(user, password string, urls ...string) *clientv3.Client {
	f.Helper()
	config := clientv3.Config{Endpoints: urls, DialTimeout: 20 * time.Second, Username: user, Password: password,
		Logger: zap.NewNop(), TLS: nil}
	if urls[0] != f.front.URL {
		config.TLS = f.cluster.ClientTLS()
	}
	client, err := clientv3.New(config)
	f.must(err)
	f.Cleanup(func() { client.Close() })
	return client
}

// dial opens a connection without the official client's retries.
func (f *fixture) dial(addr string) *grpc.ClientConn {
	f.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	f.must(err)
	f.Cleanup(func() { conn.Close() })
	return conn
}

// awaitSync waits until a front serves reads.
func (f *fixture) awaitSync(client *clientv3.Client) {
	f.Helper()
	f.eventually("the first sync", func() bool {
		ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
		defer cancel()
		_, err := client.Get(ctx, "x", clientv3.WithSerializable())
		return err == nil
	})
}

func (f *fixture) eventually(what string, condition func() bool) {
	f.Helper()
	f.cluster.Eventually(what, condition)
}

func (f *fixture) put(client *clientv3.Client, key, value string) int64 {
	f.Helper()
	answer, err := client.Put(f.ctx, key, value)
	f.must(err)
	return answer.Header.Revision
}

// wantSame compares two answers, which may be errors.
func (f *fixture) wantSame(what string, got, wanted any) {
	f.Helper()
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		f.Errorf("%s:\n  through the front %v\n  directly          %v", what, got, wanted)
	}
}

// follow reads a watch up to a revision; every event must have the next revision.
func (f *fixture) follow(events clientv3.WatchChan, next, last int64) {
	f.Helper()
	for next <= last {
		select {
		case answer, open := <-events:
			if !open || answer.Err() != nil {
				f.Fatalf("the watch ended before %d: %v", next, answer.Err())
			}
			for _, event := range answer.Events {
				if event.Kv.ModRevision != next {
					f.Fatalf("%d came where %d should have", event.Kv.ModRevision, next)
				}
				next++
			}
		case <-f.ctx.Done():
			f.Fatalf("waited for the event at %d", next)
		}
	}
}

// session is a recorded run over a cluster and two fronts.
type session struct {
	*watch.Session
	cluster *harness.Cluster
	fronts  []*harness.Front
}

func newSession(t *testing.T, binary string, args ...string) *session {
	t.Helper()
	c := harness.StartCluster(t, harness.ClusterOptions{Binary: binary})
	s := &session{cluster: c}
	for range 2 {
		s.fronts = append(s.fronts, harness.StartFront(c, harness.FrontOptions{Args: args}))
	}
	s.Session = watch.NewSession(t, s.member(0))
	s.Rules = watch.Rules{MissingPrev: true, Behind: true, LostDeletes: binary == harness.Debian}
	s.CallLimit = 8 * time.Second
	return s
}

func (s *session) member(n int) watch.Place {
	return watch.Place{Addr: s.cluster.Members[n].Addr, Etcd: true, Old: s.cluster.Options.Binary == harness.Debian}
}

func (s *session) place(front int) watch.Place {
	return s.placeOf(s.fronts[front].Addr)
}

// placeOf is an address that leads to a front.
func (s *session) placeOf(addr string) watch.Place {
	other := !harness.IsVigil()
	return watch.Place{Addr: addr, Etcd: other, Old: other && s.cluster.Options.Binary == harness.Debian}
}

// record writes, reads and watches through both fronts and directly while `fault` runs, and after it
// for as long as it has taken to make up for it, and checks everything that was recorded.
func (s *session) record(fault func()) {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	const pause = 10 * time.Millisecond
	for _, addr := range []string{s.fronts[0].Addr, s.fronts[1].Addr, s.cluster.Members[1].Addr} {
		s.Write(ctx, addr, pause)
		s.Read(ctx, addr, pause)
	}
	s.addWatches()
	s.awaitWrites(100)
	fault()
	s.cluster.Recover()
	s.addWatches()
	s.awaitWrites(100)
	stop()
	s.Finish()
}

func (s *session) addWatches() {
	for front := range s.fronts {
		s.Watch(s.place(front), watch.Load{Clients: 1, Streams: 2, Each: 6, Pace: time.Millisecond})
	}
	s.Watch(s.member(0), watch.Load{Streams: 1, Each: 4})
}

// awaitWrites waits until so many more writes were acknowledged.
func (s *session) awaitWrites(count int64) {
	s.Helper()
	until := s.Known() + count
	s.cluster.Eventually("writes", func() bool { return s.Known() >= until })
}

func statusOf(f *fixture, member *harness.Member) *pb.StatusResponse {
	f.Helper()
	status := f.cluster.Status(member)
	if status == nil {
		f.Fatalf("%s does not answer", member.Name)
	}
	return status
}
