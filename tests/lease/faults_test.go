package lease

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"vigil/tests/harness"
)

func id(i int64) string { return fmt.Sprintf("%08d", i) }

// watchAll watches every key from now on, and returns when that has begun.
func (f *fixture) watchAll() pb.Watch_WatchClient {
	f.Helper()
	stream, err := f.watch.Watch(f.ctx)
	f.must(err)
	f.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}}}}))
	r, err := stream.Recv()
	f.must(err)
	if !r.Created {
		f.Fatalf("not created: %v", r)
	}
	return stream
}

// etcd #6102: keys are attached, detached and moved to another lease, across restarts: a lease deletes
// the keys that are attached to it now and no others.
func TestPastFaultKeysOfALeaseAfterRestarts(t *testing.T) {
	t.Parallel()
	options := harness.Options{Dir: filepath.Join(t.TempDir(), "data"), Port: harness.FreePort()}
	server := harness.Start(t, options)
	f := connect(t, server)
	f.grant(1, 1000)
	f.grant(2, 1000)
	for round := range 3 {
		f.put("stays", 1)
		f.put("moves", 1)
		f.put("leaves", 1)
		f.put("moves", 2)
		f.put("leaves", 0)
		if round == 1 {
			f.must(server.Stop()) // leaves a checkpoint
		} else {
			server.Kill() // leaves none
		}
		server = harness.Start(t, options)
		f = connect(t, server)
		for lease, want := range map[int64]string{1: "[stays]", 2: "[moves]"} {
			r, err := f.lease.LeaseTimeToLive(f.ctx, &pb.LeaseTimeToLiveRequest{ID: lease, Keys: true})
			f.must(err)
			if got := fmt.Sprintf("%s", r.Keys); got != want {
				t.Errorf("round %d: keys of %d are %s, want %s", round, lease, got, want)
			}
		}
	}
	_, err := f.lease.LeaseRevoke(f.ctx, &pb.LeaseRevokeRequest{ID: 1})
	f.must(err)
	if n := f.count(""); n != 2 {
		t.Errorf("%d keys are left, want moves and leaves", n)
	}
}

// etcd #9395, #20273: every start gives each lease its full TTL again.
func TestPastFaultRestartsDoNotUseUpTheTime(t *testing.T) {
	t.Parallel()
	options := harness.Options{Dir: filepath.Join(t.TempDir(), "data"), Port: harness.FreePort()}
	server := harness.Start(t, options)
	f := connect(t, server)
	f.grant(1, 6)
	f.put("a", 1)
	for range 4 {
		time.Sleep(2 * time.Second)
		server.Kill()
		server = harness.Start(t, options)
	}
	f = connect(t, server)
	if f.count("a") != 1 {
		t.Error("the lease expired eight seconds after the grant, and two after the last restart")
	}
}

// etcd #15247: leases were revoked because the server was stuck. Time during which the server is stopped
// does not count, and renewals that wait in its sockets are in time.
func TestPastFaultServerThatWasStopped(t *testing.T) {
	t.Parallel()
	onlyVigil(t)
	f := newFixture(t)
	f.grant(1, 4)
	f.put("a", 1)
	stream, err := f.lease.LeaseKeepAlive(f.ctx)
	f.must(err)
	f.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: 1}))
	_, err = stream.Recv()
	f.must(err)
	f.must(syscall.Kill(f.server.Pid(), syscall.SIGSTOP))
	time.Sleep(time.Second)
	f.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: 1}))
	time.Sleep(6 * time.Second)
	f.must(syscall.Kill(f.server.Pid(), syscall.SIGCONT))
	r, err := stream.Recv()
	f.must(err)
	if r.TTL != 4 || f.count("a") != 1 {
		t.Errorf("the renewal returned %d, and there are %d keys", r.TTL, f.count("a"))
	}
	// Without further renewals the lease expires.
	for end := time.Now().Add(20 * time.Second); f.count("a") > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lease does not expire")
		}
	}
}

// The header of a keep-alive is consistent with its answer: if the lease exists at revision R, no delete
// of its keys is at or below R.
func TestPastFaultKeepAliveHeaderIsNotAheadOfTheRevoke(t *testing.T) {
	f := newFixture(t)
	stream, err := f.lease.LeaseKeepAlive(f.ctx)
	f.must(err)
	for i := int64(1); i <= 200; i++ {
		f.grant(i, 100)
		f.put("k", i)
		f.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: i}))
		revoked := make(chan int64)
		go func() {
			r, err := f.lease.LeaseRevoke(f.ctx, &pb.LeaseRevokeRequest{ID: i})
			if err != nil {
				t.Error(err)
			}
			revoked <- r.GetHeader().GetRevision()
		}()
		kept, err := stream.Recv()
		f.must(err)
		if at := <-revoked; kept.TTL > 0 && kept.Header.Revision >= at {
			t.Fatalf("alive at %d, revoked at %d", kept.Header.Revision, at)
		}
	}
}
