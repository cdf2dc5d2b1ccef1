package lease

import (
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// 100,000 leases are renewed several times over a few streams.
func TestManyLeasesAreKeptAlive(t *testing.T) {
	const leases, streams, rounds = 100_000, 4, 2
	f := newFixture(t)
	f.grant(-1, 1000) // so that memory for connections and threads is not counted
	before := f.residentBytes()
	begin := time.Now()
	f.grantMany(leases, 1000)
	granted := time.Since(begin)
	begin = time.Now()
	done := make(chan error, 2*streams)
	for s := range int64(streams) {
		stream, err := f.lease.LeaseKeepAlive(f.ctx)
		f.must(err)
		go func() {
			for i := range int64(leases * rounds / streams) {
				if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: 1 + (i*streams+s)%leases}); err != nil {
					done <- err
					return
				}
			}
			done <- stream.CloseSend()
		}()
		go func() {
			for range leases * rounds / streams {
				r, err := stream.Recv()
				if err == nil && r.TTL != 1000 {
					t.Errorf("lease %d has %d", r.ID, r.TTL)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 2 * streams {
		f.must(<-done)
	}
	each := (f.residentBytes() - before) / leases
	t.Logf("granted in %v, %d renewals in %v, %d bytes each under this build", granted.Round(time.Millisecond),
		leases*rounds, time.Since(begin).Round(time.Millisecond), each)
	if f.leases() != leases+1 {
		t.Errorf("%d leases", f.leases())
	}
}

// Many leases expire at the same time: no put waits for all of them, each lease is removed with its
// keys at one revision, and soon all are removed.
func TestManyLeasesExpireAtOnce(t *testing.T) {
	const leases, sample = 20_000, 1000
	f := newFixture(t)
	// All must be granted before the first expires; a sample tells how long that takes.
	begin := time.Now()
	f.grantMany(sample, 1000)
	f.each(sample, func(i int64) error {
		_, err := f.lease.LeaseRevoke(f.ctx, &pb.LeaseRevokeRequest{ID: i})
		return err
	})
	ttl := 8 + int64(time.Since(begin).Seconds()*3*leases/sample)
	f.grantMany(leases, ttl)
	f.each(leases/4, func(i int64) error {
		for _, key := range []string{"/a", "/b"} {
			if _, err := f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte("leased/" + id(i) + key), Lease: i}); err != nil {
				return err
			}
		}
		return nil
	})
	if n := f.leases(); n != leases {
		t.Fatalf("%d leases", n)
	}
	watch := f.watchAll()
	var slowest atomic.Int64
	stop := make(chan struct{})
	stopped := make(chan error)
	go func() {
		for {
			sent := time.Now()
			_, err := f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte("other"), Value: []byte("v")})
			slowest.Store(max(slowest.Load(), int64(time.Since(sent))))
			select {
			case <-stop:
				stopped <- err
				return
			default:
				if err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	// Deletes come in pairs, both keys of a lease in one response.
	deleted := 0
	for deleted < leases/2 {
		r, err := watch.Recv()
		f.must(err)
		byRevision := map[int64]int{}
		for _, event := range r.Events {
			if event.Type == 1 {
				byRevision[event.Kv.ModRevision]++
				deleted++
			}
		}
		for revision, n := range byRevision {
			if n != 2 {
				t.Fatalf("%d keys deleted at revision %d", n, revision)
			}
		}
	}
	for end := time.Now().Add(30 * time.Second); f.leases() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d leases are left", f.leases())
		}
	}
	close(stop)
	f.must(<-stopped)
	t.Logf("slowest put: %v", time.Duration(slowest.Load()).Round(time.Millisecond))
	if slowest.Load() > int64(5*time.Second) {
		t.Errorf("a put took %v", time.Duration(slowest.Load()))
	}
	if n := f.count("leased/"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A lease with 50,000 keys is revoked at one revision.
func TestLeaseWithManyKeys(t *testing.T) {
	const keys = 50_000
	f := newFixture(t)
	f.grant(1, 1000)
	f.each(keys/100, func(i int64) error {
		txn := &pb.TxnRequest{}
		for k := range int64(100) {
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: []byte("k" + id(i*100+k)), Lease: 1}}})
		}
		_, err := f.kv.Txn(f.ctx, txn)
		return err
	})
	r, err := f.lease.LeaseTimeToLive(f.ctx, &pb.LeaseTimeToLiveRequest{ID: 1, Keys: true})
	f.must(err)
	if len(r.Keys) != keys {
		t.Fatalf("%d keys", len(r.Keys))
	}
	revoked, err := f.lease.LeaseRevoke(f.ctx, &pb.LeaseRevokeRequest{ID: 1})
	f.must(err)
	if revoked.Header.Revision != r.Header.Revision+1 {
		t.Errorf("revoked at %d, after %d", revoked.Header.Revision, r.Header.Revision)
	}
	if n := f.count("k"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
