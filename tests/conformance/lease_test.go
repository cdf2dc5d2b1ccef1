package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"vigil/tests/harness"
)

func (f *fixture) grant(ttl int64) clientv3.LeaseID {
	f.Helper()
	r, err := f.client.Grant(f.ctx, ttl)
	f.must(err)
	want(f, "granted", r.TTL, ttl)
	if r.ID <= 0 {
		f.Errorf("id is %d", r.ID)
	}
	return r.ID
}

func (f *fixture) timeToLive(id clientv3.LeaseID) *clientv3.LeaseTimeToLiveResponse {
	f.Helper()
	r, err := f.client.TimeToLive(f.ctx, id, clientv3.WithAttachedKeys())
	f.must(err)
	return r
}

// leaseKeys are the keys of a lease, sorted, as "a b c".
func (f *fixture) leaseKeys(id clientv3.LeaseID) string {
	f.Helper()
	var keys []string
	for _, key := range f.timeToLive(id).Keys {
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestLeaseGrant(t *testing.T) {
	f := newFixture(t)
	revision := f.revision()
	id := f.grant(60)
	r := f.timeToLive(id)
	want(f, "id", r.ID, id)
	want(f, "granted", r.GrantedTTL, 60)
	want(f, "left", r.TTL >= 45 && r.TTL < 60, true) // never the whole TTL: seconds are rounded down
	want(f, "keys", len(r.Keys), 0)
	want(f, "revision", r.ResponseHeader.Revision, revision) // a grant has no revision
}

func TestLeaseGrantWithChosenIds(t *testing.T) {
	f := newFixture(t)
	lease := pb.NewLeaseClient(f.raw())
	for _, id := range []int64{1, -5, 1<<63 - 1, -1 << 63} {
		r, err := lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: id, TTL: 100})
		f.must(err)
		want(f, "id", r.ID, id)
		_, err = lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: id, TTL: 100})
		f.wantError(err, rpctypes.ErrGRPCLeaseExist)
	}
	_, err := lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: 1, TTL: 9_000_000_001})
	f.wantError(err, rpctypes.ErrGRPCLeaseTTLTooLarge)
	r, err := lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: 9, TTL: 9_000_000_000})
	f.must(err)
	want(f, "granted", r.TTL, 9_000_000_000)
	for _, ttl := range []int64{0, -1, -1 << 63} {
		r, err := lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{TTL: ttl})
		f.must(err)
		want(f, "shortest", r.TTL == 1 || r.TTL == 2, true) // by the election timeout
	}
}

func TestLeaseRevoke(t *testing.T) {
	f := newFixture(t)
	id := f.grant(100)
	f.put("b", "1", clientv3.WithLease(id))
	f.put("a", "1", clientv3.WithLease(id))
	f.put("other", "1")
	watch := f.client.Watch(f.ctx, "", clientv3.WithPrefix(), clientv3.WithRev(5))
	r, err := f.client.Revoke(f.ctx, id)
	f.must(err)
	want(f, "revision", r.Header.Revision, 5)
	// One revision, one response, in the order of keys.
	want(f, "events", events(f.receive(watch)), "DELETE a@5 DELETE b@5")
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "other")
	_, err = f.client.Revoke(f.ctx, id)
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	want(f, "time left", f.timeToLive(id).TTL, -1)
	want(f, "granted", f.timeToLive(id).GrantedTTL, 0)
	empty := f.grant(100)
	r, err = f.client.Revoke(f.ctx, empty)
	f.must(err)
	want(f, "revision without keys", r.Header.Revision, 5)
}

func TestLeaseAttachAndDetach(t *testing.T) {
	f := newFixture(t)
	one, two := f.grant(100), f.grant(100)
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		f.put(key, "1", clientv3.WithLease(one))
	}
	f.put("a", "2")                             // detaches
	f.put("b", "2", clientv3.WithLease(two))    // moves
	f.delete("c")                               // detaches
	f.put("d", "2", clientv3.WithIgnoreLease()) // stays
	f.put("e", "", clientv3.WithIgnoreValue())  // detaches: no lease was named
	want(f, "keys of one", f.leaseKeys(one), "d")
	want(f, "keys of two", f.leaseKeys(two), "b")
	want(f, "lease of d", f.get("d").Kvs[0].Lease, int64(one))
	want(f, "lease of e", f.get("e").Kvs[0].Lease, 0)
	_, err := f.client.Txn(f.ctx).Then(
		clientv3.OpPut("a", "3", clientv3.WithLease(two)),
		clientv3.OpPut("f", "3", clientv3.WithLease(one)),
		clientv3.OpDelete("b")).Commit()
	f.must(err)
	want(f, "keys of one", f.leaseKeys(one), "d f")
	want(f, "keys of two", f.leaseKeys(two), "a")
	_, err = f.client.Revoke(f.ctx, one)
	f.must(err)
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "a e")
}

func TestLeaseUnknownInWrites(t *testing.T) {
	f := newFixture(t)
	_, err := f.client.Put(f.ctx, "a", "1", clientv3.WithLease(12345))
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	_, err = f.client.Txn(f.ctx).Then(clientv3.OpPut("b", "1"),
		clientv3.OpPut("a", "1", clientv3.WithLease(12345))).Commit()
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "") // neither was put
	id := f.grant(100)
	_, err = f.kv().Put(f.ctx, &pb.PutRequest{Key: []byte("a"), Lease: int64(id), IgnoreLease: true})
	f.wantError(err, rpctypes.ErrGRPCLeaseProvided)
}

func TestLeaseCompare(t *testing.T) {
	f := newFixture(t)
	id := f.grant(100)
	f.put("a", "1", clientv3.WithLease(id))
	r, err := f.client.Txn(f.ctx).If(clientv3.Compare(clientv3.LeaseValue("a"), "=", id)).Commit()
	f.must(err)
	want(f, "succeeded", r.Succeeded, true)
}

func TestLeaseLeases(t *testing.T) {
	f := newFixture(t)
	r, err := f.client.Leases(f.ctx)
	f.must(err)
	want(f, "leases", len(r.Leases), 0)
	late, soon, between := f.grant(300), f.grant(100), f.grant(200)
	r, err = f.client.Leases(f.ctx)
	f.must(err)
	var ids []clientv3.LeaseID
	for _, lease := range r.Leases {
		ids = append(ids, lease.ID)
	}
	want(f, "leases", fmt.Sprint(ids), fmt.Sprint([]clientv3.LeaseID{soon, between, late}))
}

func TestLeaseExpires(t *testing.T) {
	f := newFixture(t)
	granted := time.Now()
	id := f.grant(4)
	for _, key := range []string{"c", "a", "b"} {
		f.put(key, "1", clientv3.WithLease(id))
	}
	watch := f.client.Watch(f.ctx, "", clientv3.WithPrefix(), clientv3.WithRev(5))
	want(f, "events", events(f.receive(watch)), "DELETE a@5 DELETE b@5 DELETE c@5")
	if took := time.Since(granted); took < 3900*time.Millisecond {
		t.Errorf("expired after %v", took)
	}
	want(f, "time left", f.timeToLive(id).TTL, -1)
	_, err := f.client.KeepAliveOnce(f.ctx, id)
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	_, err = f.client.Put(f.ctx, "a", "2", clientv3.WithLease(id))
	f.wantError(err, rpctypes.ErrLeaseNotFound)
}

func TestLeaseKeepAlive(t *testing.T) {
	f := newFixture(t)
	id := f.grant(4)
	f.put("a", "1", clientv3.WithLease(id))
	ctx, cancel := context.WithCancel(f.ctx)
	alive, err := f.client.KeepAlive(ctx, id)
	f.must(err)
	begin := time.Now()
	for time.Since(begin) < 6*time.Second {
		r, ok := <-alive
		if !ok || r.TTL != 4 || r.ID != id || r.ResponseHeader.Revision != 2 {
			t.Fatalf("kept alive: %v %v", r, ok)
		}
	}
	f.wantKeys(f.get("a").Kvs, "a")
	cancel()
	watch := f.client.Watch(f.ctx, "a", clientv3.WithRev(3))
	want(f, "events", events(f.receive(watch)), "DELETE a@3")
}

func TestLeaseKeepAliveOfARevokedLease(t *testing.T) {
	f := newFixture(t)
	id := f.grant(100)
	r, err := f.client.KeepAliveOnce(f.ctx, id)
	f.must(err)
	want(f, "time", r.TTL, 100)
	alive, err := f.client.KeepAlive(f.ctx, id)
	f.must(err)
	if _, ok := <-alive; !ok {
		t.Fatal("closed although the lease exists")
	}
	_, err = f.client.Revoke(f.ctx, id)
	f.must(err)
	_, err = f.client.KeepAliveOnce(f.ctx, id)
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	stream, err := pb.NewLeaseClient(f.raw()).LeaseKeepAlive(f.ctx)
	f.must(err)
	for _, gone := range []int64{int64(id), 77, 0} {
		f.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: gone}))
		answer, err := stream.Recv()
		f.must(err)
		want(f, "id", answer.ID, gone)
		want(f, "time", answer.TTL, 0)
	}
	f.must(stream.CloseSend())
	_, err = stream.Recv()
	want(f, "end", fmt.Sprint(err), "EOF")
}

// The stream answers in the order of the requests, however many come at once.
func TestLeaseKeepAliveManyOnOneStream(t *testing.T) {
	f := newFixture(t)
	const leases, rounds = 500, 20
	lease := pb.NewLeaseClient(f.raw())
	for id := int64(1); id <= leases; id++ {
		_, err := lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: id, TTL: 100 + id})
		f.must(err)
	}
	stream, err := lease.LeaseKeepAlive(f.ctx)
	f.must(err)
	go func() {
		for i := range int64(leases * rounds) {
			stream.Send(&pb.LeaseKeepAliveRequest{ID: 1 + i%leases})
		}
		stream.CloseSend()
	}()
	for i := range int64(leases * rounds) {
		answer, err := stream.Recv()
		f.must(err)
		if answer.ID != 1+i%leases || answer.TTL != 101+i%leases {
			t.Fatalf("answer %d is %v", i, answer)
		}
	}
}

// As in etcd: a lease exists after a restart, with its keys and its full TTL.
func TestLeaseAfterRestart(t *testing.T) {
	harness.OnlyAlone(t, "leases do not restart with Vigil")
	t.Parallel()
	options := harness.Options{Dir: t.TempDir() + "/data", Port: harness.FreePort()}
	server := harness.Start(t, options)
	f := fixtureOn(t, server)
	long, short := f.grant(1000), f.grant(6)
	f.put("a", "1", clientv3.WithLease(long))
	f.put("b", "1", clientv3.WithLease(short))
	f.put("c", "1", clientv3.WithLease(long))
	f.put("c", "2")
	time.Sleep(3 * time.Second)
	server.Kill()
	began := time.Now()
	harness.Start(t, options)
	f.awaitServer()
	want(f, "keys", f.leaseKeys(long), "a")
	want(f, "left", f.timeToLive(long).TTL >= 960, true)
	left := f.timeToLive(short).TTL
	want(f, "full TTL again", float64(left)+time.Since(began).Seconds() >= 5, true)
	watch := f.client.Watch(f.ctx, "b", clientv3.WithRev(6))
	want(f, "events", events(f.receive(watch)), "DELETE b@6")
	if took := time.Since(began); took < 5*time.Second {
		t.Errorf("expired %v after the restart", took)
	}
}

func (f *fixture) awaitServer() {
	f.Helper()
	for {
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		_, err := f.client.Get(ctx, "x")
		cancel()
		if err == nil {
			return
		}
		f.must(f.ctx.Err())
	}
}

// A client that renews a lease continues when the server runs again.
func TestLeaseKeepAliveAcrossRestart(t *testing.T) {
	t.Parallel()
	options := harness.Options{Dir: t.TempDir() + "/data", Port: harness.FreePort()}
	server := harness.Start(t, options)
	f := fixtureOn(t, server)
	id := f.grant(12)
	f.put("a", "1", clientv3.WithLease(id))
	alive, err := f.client.KeepAlive(f.ctx, id)
	f.must(err)
	var renewals atomic.Int64
	go func() {
		for range alive {
			renewals.Add(1)
		}
		renewals.Store(-1 << 30) // closed: the client considers the lease lost
	}()
	for renewals.Load() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	server.Kill()
	harness.Start(t, options)
	f.awaitServer()
	before := renewals.Load()
	for renewals.Load() >= 0 && renewals.Load() < before+3 { // together longer than the TTL
		f.must(f.ctx.Err())
		time.Sleep(50 * time.Millisecond)
	}
	want(f, "the client considers the lease alive", renewals.Load() > 0, true)
	f.wantKeys(f.get("a").Kvs, "a")
}

func TestLeaseSessionLockAndElection(t *testing.T) {
	f := newFixture(t)
	first, err := concurrency.NewSession(f.client, concurrency.WithTTL(60))
	f.must(err)
	second, err := concurrency.NewSession(f.client, concurrency.WithTTL(60))
	f.must(err)
	defer second.Close()
	mutex := concurrency.NewMutex(first, "lock")
	f.must(mutex.Lock(f.ctx))
	other := concurrency.NewMutex(second, "lock")
	want(f, "second lock", fmt.Sprint(other.TryLock(f.ctx)), concurrency.ErrLocked.Error())
	got := make(chan error)
	go func() { got <- other.Lock(f.ctx) }()
	first.Close() // revokes the lease, and with it the lock
	f.must(<-got)
	election := concurrency.NewElection(second, "election")
	f.must(election.Campaign(f.ctx, "me"))
	leader, err := election.Leader(f.ctx)
	f.must(err)
	want(f, "leader", string(leader.Kvs[0].Value), "me")
}
