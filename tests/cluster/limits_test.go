package cluster

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"

	"vigil/tests/harness"
)

// peakMiB is the most memory that the front has had.
func (f *fixture) peakMiB() int {
	f.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.front.Pid()))
	f.must(err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	kib, err := strconv.Atoi(string(found[1]))
	f.must(err)
	return kib >> 10
}

// Many calls that wait in the cluster take all streams that a member allows on a connection: the calls
// of others continue, and leases are renewed.
func TestWaitingCallsStopNoOthers(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("the proxy has one connection for all")
	}
	onEach(t, func(t *testing.T, binary string) {
		const streams = 8
		f := newFixture(t, harness.ClusterOptions{Binary: binary, Args: []string{"--max-concurrent-streams", strconv.Itoa(streams)}},
			harness.FrontOptions{Args: []string{"--io-threads", "1"}})
		lease, err := f.via.Grant(f.ctx, 600)
		f.must(err)
		other, err := f.via.Grant(f.ctx, 600)
		f.must(err)
		ctx, cancel := context.WithCancel(f.ctx)
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		conn := f.dial(f.front.Addr)
		_, err = v3lockpb.NewLockClient(conn).Lock(f.ctx, &v3lockpb.LockRequest{Name: []byte("name"), Lease: int64(lease.ID)})
		f.must(err)
		for range 3 * streams {
			waiting.Add(2)
			go func() {
				defer waiting.Done()
				v3lockpb.NewLockClient(conn).Lock(ctx, &v3lockpb.LockRequest{Name: []byte("name"), Lease: int64(other.ID)})
			}()
			go func() {
				defer waiting.Done()
				snapshot, err := pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
				if err == nil {
					snapshot.Header()
					<-ctx.Done() // without reading it
				}
			}()
		}
		f.eventually("locks that wait", func() bool {
			answer, err := f.direct.Get(f.ctx, "name/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			return err == nil && answer.Count == 2
		})
		for i := range 20 {
			ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
			_, err := f.via.Put(ctx, "k", strconv.Itoa(i))
			f.must(err)
			_, err = f.via.Get(ctx, "k")
			f.must(err)
			_, err = f.via.KeepAliveOnce(ctx, lease.ID)
			f.must(err)
			cancel()
		}
	})
}

// Answers of 40 MB to many clients at the same time: all get theirs, one after the other, and the front
// holds only some of them.
func TestLongAnswersWaitForRoom(t *testing.T) {
	if testing.Short() || !harness.IsVigil() {
		t.Skip("moves a gigabyte")
	}
	const keys, clients = 40, 24
	f := newFixture(t, harness.ClusterOptions{}, harness.FrontOptions{})
	value := strings.Repeat("v", 1<<20)
	for i := range keys {
		f.put(f.direct, fmt.Sprintf("k%d", i), value)
	}
	f.awaitRevision(f.via, keys+1)
	before := f.peakMiB()
	read := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: read}}}}
	var group sync.WaitGroup
	for range clients {
		conn := f.dial(f.front.Addr)
		group.Add(1)
		go func() {
			defer group.Done()
			answer, err := pb.NewKVClient(conn).Txn(f.ctx, txn, grpc.MaxCallRecvMsgSize(1<<30))
			if err != nil {
				t.Error(err)
			} else if got := len(answer.Responses[0].GetResponseRange().Kvs); got != keys {
				t.Errorf("%d keys instead of %d", got, keys)
			}
		}()
	}
	group.Wait()
	grown := f.peakMiB() - before
	t.Logf("%d answers of %d MiB: the front had %d MiB and grew by %d MiB", clients, keys, before, grown)
	if grown > clients*keys/2 {
		t.Errorf("the front grew by %d MiB", grown)
	}
}

// awaitRevision waits until the mirror of a front has a revision.
func (f *fixture) awaitRevision(client *clientv3.Client, revision int64) {
	f.Helper()
	f.eventually("the revision in the mirror", func() bool {
		answer, err := client.Get(f.ctx, "x", clientv3.WithSerializable())
		return err == nil && answer.Header.Revision >= revision
	})
}
