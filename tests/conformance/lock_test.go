package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

// These services are not used by clientv3: they are for clients without such a library.

func (f *fixture) lease(ttl int64) int64 {
	f.Helper()
	granted, err := f.client.Grant(f.ctx, ttl)
	f.must(err)
	return int64(granted.ID)
}

func (f *fixture) wantStatus(err error, code codes.Code, text string) {
	f.Helper()
	if s := status.Convert(err); s.Code() != code || s.Message() != text {
		f.Errorf("error is %v, want %v: %s", err, code, text)
	}
}

// later runs a call in the background; get returns its outcome.
type later[T any] struct {
	done   chan struct{}
	value  T
	err    error
	cancel context.CancelFunc
}

func start[T any](f *fixture, call func(ctx context.Context) (T, error)) *later[T] {
	ctx, cancel := context.WithCancel(f.ctx)
	l := &later[T]{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(l.done)
		l.value, l.err = call(ctx)
	}()
	f.Cleanup(func() { cancel(); <-l.done })
	return l
}

func (l *later[T]) get(f *fixture) (T, error) {
	f.Helper()
	select {
	case <-l.done:
	case <-f.ctx.Done():
		f.Fatal("no answer in time")
	}
	return l.value, l.err
}

func (l *later[T]) wantWaiting(f *fixture) {
	f.Helper()
	select {
	case <-l.done:
		f.Errorf("answered with %v, %v; should wait", l.value, l.err)
	case <-time.After(quiet):
	}
}

func (f *fixture) queue(prefix string) []string {
	f.Helper()
	got, err := f.client.Get(f.ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	f.must(err)
	var keys []string
	for _, kv := range got.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

func (f *fixture) wantQueue(prefix string, count int) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); len(f.queue(prefix)) != count; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("keys are %v, want %d", f.queue(prefix), count)
		}
	}
}

type locker struct {
	*fixture
	pb v3lockpb.LockClient
}

func newLocker(t *testing.T) locker {
	f := newFixture(t)
	return locker{f, v3lockpb.NewLockClient(f.raw())}
}

func (l locker) lock(name string, lease int64) *later[*v3lockpb.LockResponse] {
	return start(l.fixture, func(ctx context.Context) (*v3lockpb.LockResponse, error) {
		return l.pb.Lock(ctx, &v3lockpb.LockRequest{Name: []byte(name), Lease: lease})
	})
}

func TestLockIsHeldByOneClientAtATimeInOrder(t *testing.T) {
	l := newLocker(t)
	leases := []int64{l.lease(100), l.lease(100), l.lease(100)}
	calls := make([]*later[*v3lockpb.LockResponse], 3)
	for i, lease := range leases {
		calls[i] = l.lock("name", lease)
		l.wantQueue("name/", i+1)
	}
	for i, lease := range leases {
		got, err := calls[i].get(l.fixture)
		l.must(err)
		want(l.fixture, "key", string(got.Key), fmt.Sprintf("name/%x", lease))
		if i < 2 {
			calls[i+1].wantWaiting(l.fixture)
		}
		unlocked, err := l.pb.Unlock(l.ctx, &v3lockpb.UnlockRequest{Key: got.Key})
		l.must(err)
		if unlocked.Header.Revision <= got.Header.Revision || unlocked.Header.MemberId == 0 {
			l.Errorf("unlocked at %v after %v", unlocked.Header, got.Header)
		}
	}
	l.wantQueue("name/", 0)
}

func TestLockAgainByItsHolder(t *testing.T) {
	l := newLocker(t)
	lease := l.lease(100)
	first, err := l.lock("name", lease).get(l.fixture)
	l.must(err)
	again, err := l.lock("name", lease).get(l.fixture)
	l.must(err)
	want(l.fixture, "key", string(again.Key), string(first.Key))
	want(l.fixture, "revision", again.Header.Revision, first.Header.Revision)
}

func TestLockWithoutALease(t *testing.T) {
	l := newLocker(t)
	_, err := l.lock("name", 0).get(l.fixture)
	l.must(err)
	leases, err := l.client.Leases(l.ctx)
	l.must(err)
	want(l.fixture, "leases", len(leases.Leases), 1)
	left, err := l.client.TimeToLive(l.ctx, leases.Leases[0].ID)
	l.must(err)
	want(l.fixture, "granted", left.GrantedTTL, 60)
}

func TestCanceledLockRemovesItsKey(t *testing.T) {
	l := newLocker(t)
	_, err := l.lock("name", l.lease(100)).get(l.fixture)
	l.must(err)
	second := l.lock("name", l.lease(100))
	l.wantQueue("name/", 2)
	third := l.lock("name", l.lease(100))
	l.wantQueue("name/", 3)
	second.cancel()
	l.wantQueue("name/", 2)
	third.wantWaiting(l.fixture)
	_, err = l.pb.Unlock(l.ctx, &v3lockpb.UnlockRequest{Key: []byte(l.queue("name/")[0])})
	l.must(err)
	_, err = third.get(l.fixture)
	l.must(err)
}

func TestLockWithARevokedLease(t *testing.T) {
	l := newLocker(t)
	_, err := l.lock("name", 1234).get(l.fixture)
	l.wantStatus(err, codes.Unknown, "etcdserver: requested lease not found")
	first := l.lease(100)
	_, err = l.lock("name", first).get(l.fixture)
	l.must(err)
	lease := l.lease(100)
	waiting := l.lock("name", lease)
	l.wantQueue("name/", 2)
	_, err = l.client.Revoke(l.ctx, clientv3.LeaseID(lease))
	l.must(err)
	waiting.wantWaiting(l.fixture)
	// The holder's lease ends: the next waiter finds that its own lease is revoked.
	_, err = l.client.Revoke(l.ctx, clientv3.LeaseID(first))
	l.must(err)
	_, err = waiting.get(l.fixture)
	l.wantStatus(err, codes.Unknown, "mutex: session is expired")
}

func TestLockPastTheLimitOnWatches(t *testing.T) {
	harness.OnlyAlone(t, "locks wait in the cluster")
	if harness.IsEtcd(harness.Subject()) {
		t.Skip("etcd has no such limit")
	}
	f := newFixture(t, "--max-watchers=2")
	l := locker{f, v3lockpb.NewLockClient(f.raw())}
	_, err := l.lock("name", l.lease(100)).get(f)
	l.must(err)
	l.lock("name", l.lease(100))
	l.wantQueue("name/", 2)
	l.lock("name", l.lease(100))
	l.wantQueue("name/", 3)
	_, err = l.lock("name", l.lease(100)).get(f)
	l.wantStatus(err, codes.ResourceExhausted, "vigil: too many watches on this server")
	l.wantQueue("name/", 3)
	observer, err := v3electionpb.NewElectionClient(f.raw()).Observe(f.ctx, &v3electionpb.LeaderRequest{Name: []byte("e")})
	l.must(err)
	_, err = observer.Recv()
	l.wantStatus(err, codes.ResourceExhausted, "vigil: too many watches on this server")
}

func TestUnlockOfAMissingKey(t *testing.T) {
	l := newLocker(t)
	_, err := l.pb.Unlock(l.ctx, &v3lockpb.UnlockRequest{Key: []byte("none")})
	l.must(err)
	_, err = l.pb.Unlock(l.ctx, &v3lockpb.UnlockRequest{})
	l.wantStatus(err, codes.Unknown, "etcdserver: key is not provided")
}

type elector struct {
	*fixture
	pb v3electionpb.ElectionClient
}

func newElector(t *testing.T) elector {
	f := newFixture(t)
	return elector{f, v3electionpb.NewElectionClient(f.raw())}
}

func (e elector) campaign(value string, lease int64) *later[*v3electionpb.CampaignResponse] {
	return start(e.fixture, func(ctx context.Context) (*v3electionpb.CampaignResponse, error) {
		return e.pb.Campaign(ctx, &v3electionpb.CampaignRequest{Name: []byte("e"), Lease: lease, Value: []byte(value)})
	})
}

func (e elector) leader() string {
	e.Helper()
	got, err := e.pb.Leader(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("e")})
	e.must(err)
	return string(got.Kv.Value)
}

func TestCampaignProclaimAndResign(t *testing.T) {
	e := newElector(t)
	first, second := e.lease(100), e.lease(100)
	led, err := e.campaign("one", first).get(e.fixture)
	e.must(err)
	want(e.fixture, "name", string(led.Leader.Name), "e")
	want(e.fixture, "key", string(led.Leader.Key), fmt.Sprintf("e/%x", first))
	want(e.fixture, "lease", led.Leader.Lease, first)
	want(e.fixture, "rev", led.Leader.Rev, led.Header.Revision)
	want(e.fixture, "leader", e.leader(), "one")

	next := e.campaign("two", second)
	e.wantQueue("e/", 2)
	_, err = e.pb.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: led.Leader, Value: []byte("one!")})
	e.must(err)
	want(e.fixture, "leader", e.leader(), "one!")
	// A campaign of the current leader is a proclamation.
	again, err := e.campaign("one again", first).get(e.fixture)
	e.must(err)
	want(e.fixture, "rev", again.Leader.Rev, led.Leader.Rev)
	want(e.fixture, "leader", e.leader(), "one again")
	next.wantWaiting(e.fixture)

	_, err = e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: led.Leader})
	e.must(err)
	_, err = next.get(e.fixture)
	e.must(err)
	want(e.fixture, "leader", e.leader(), "two")
	_, err = e.pb.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: led.Leader, Value: []byte("late")})
	e.wantStatus(err, codes.Unknown, "election: not leader")
	_, err = e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: led.Leader})
	e.must(err)
}

func TestCanceledCampaignRemovesItsKey(t *testing.T) {
	e := newElector(t)
	_, err := e.campaign("one", e.lease(100)).get(e.fixture)
	e.must(err)
	second := e.campaign("two", e.lease(100))
	e.wantQueue("e/", 2)
	second.cancel()
	e.wantQueue("e/", 1)
	want(e.fixture, "leader", e.leader(), "one")
}

func TestElectionErrors(t *testing.T) {
	e := newElector(t)
	_, err := e.pb.Leader(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("e")})
	e.wantStatus(err, codes.Unknown, "election: no leader")
	const missing = `"leader" field must be provided`
	_, err = e.pb.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Value: []byte("x")})
	e.wantStatus(err, codes.Unknown, missing)
	_, err = e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{})
	e.wantStatus(err, codes.Unknown, missing)
	_, err = e.campaign(strings.Repeat("x", 1600<<10), 0).get(e.fixture)
	e.wantStatus(err, codes.Unknown, "etcdserver: request is too large")
	_, err = e.campaign("x", 1234).get(e.fixture)
	e.wantStatus(err, codes.Unknown, "etcdserver: requested lease not found")
}

func TestObserveFollowsLeaders(t *testing.T) {
	e := newElector(t)
	stream, err := e.pb.Observe(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("e")})
	e.must(err)
	see := func(value string) {
		e.Helper()
		got, err := stream.Recv()
		e.must(err)
		want(e.fixture, "observed", string(got.Kv.Value), value)
		if got.Header.Revision < got.Kv.ModRevision {
			e.Errorf("header %v of %v", got.Header, got.Kv)
		}
	}
	first, err := e.campaign("one", e.lease(100)).get(e.fixture)
	e.must(err)
	see("one")
	_, err = e.pb.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: first.Leader, Value: []byte("one!")})
	e.must(err)
	see("one!")
	next := e.campaign("two", e.lease(100))
	e.wantQueue("e/", 2)
	_, err = e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: first.Leader})
	e.must(err)
	see("two")
	second, err := next.get(e.fixture)
	e.must(err)
	_, err = e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: second.Leader})
	e.must(err)
	_, err = e.campaign("three", e.lease(100)).get(e.fixture)
	e.must(err)
	see("three")
}

// A hundred clients wait for the lock, on more connections than the server has shards.
func TestLockWithAHundredWaiters(t *testing.T) {
	l := newLocker(t)
	const many = 100
	turns := make(chan int, many)
	for i := range many {
		client := l
		if i%10 == 0 {
			client.pb = v3lockpb.NewLockClient(l.raw())
		}
		start(l.fixture, func(ctx context.Context) (*pb.ResponseHeader, error) {
			got, err := client.pb.Lock(ctx, &v3lockpb.LockRequest{Name: []byte("name")})
			if err != nil {
				l.Error(err)
				return nil, err
			}
			turns <- i
			time.Sleep(time.Millisecond)
			if len(turns) != 1 {
				l.Error("two clients hold the lock")
			}
			<-turns
			unlocked, err := client.pb.Unlock(ctx, &v3lockpb.UnlockRequest{Key: got.Key})
			return unlocked.GetHeader(), err
		})
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := l.client.Get(l.ctx, "name/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		l.must(err)
		if got.Count == 0 && got.Header.Revision >= 1+2*many {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("%d clients still wait", got.Count)
		}
	}
}

// compacting writes and compacts to the newest revision in a loop while the function runs.
func (f *fixture) compacting(while func(compactions *atomic.Int64)) {
	f.Helper()
	var compactions atomic.Int64
	over := start(f, func(ctx context.Context) (int, error) {
		for ctx.Err() == nil {
			if put, err := f.client.Put(ctx, "passing", ""); err == nil {
				f.client.Compact(ctx, put.Header.Revision)
				compactions.Add(1)
			}
		}
		return 0, nil
	})
	while(&compactions)
	over.cancel()
	_, err := over.get(f)
	f.must(err)
}

// crowd puts keys that are before all later ones in the order, so that a search takes several turns.
func (f *fixture) crowd(prefix string, keys int) {
	f.Helper()
	for at := 0; at < keys; {
		var ops []clientv3.Op
		for ; at < keys && len(ops) < 128; at++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%scrowd-%06d", prefix, at), ""))
		}
		_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
		f.must(err)
	}
}

// wantEachInTurn starts waiters behind a crowd while history is compacted during their searches. When
// the crowd is deleted, each must get its turn: get waits for it, release gives it to the next.
func wantEachInTurn[T any](f *fixture, prefix string, get func(lease int64) *later[T], release func(T) error) {
	const crowd, waiters, compactions = 30000, 4, 50
	f.Helper()
	f.crowd(prefix, crowd)
	var waiting []*later[T]
	f.compacting(func(done *atomic.Int64) {
		for range waiters {
			lease := f.lease(100)
			waiting = append(waiting, get(lease))
			f.wantQueue(fmt.Sprintf("%s%x", prefix, lease), 1)
		}
		for before := done.Load(); done.Load() < before+compactions; time.Sleep(time.Millisecond) {
			f.must(f.ctx.Err())
		}
	})
	_, err := f.client.Delete(f.ctx, prefix+"crowd-", clientv3.WithPrefix())
	f.must(err)
	for _, next := range waiting {
		got, err := next.get(f)
		f.must(err)
		f.must(release(got))
	}
}

const etcdGivesUp = "etcd's calls fail when the revision that they wait for is compacted"

func TestLockDuringCompactions(t *testing.T) {
	harness.OnlyAlone(t, "locks wait in the cluster, where a compaction ends them")
	if harness.IsEtcd(harness.Subject()) {
		t.Skip(etcdGivesUp)
	}
	l := newLocker(t)
	get := func(lease int64) *later[*v3lockpb.LockResponse] { return l.lock("name", lease) }
	wantEachInTurn(l.fixture, "name/", get, func(got *v3lockpb.LockResponse) error {
		_, err := l.pb.Unlock(l.ctx, &v3lockpb.UnlockRequest{Key: got.Key})
		return err
	})
}

func TestCampaignDuringCompactions(t *testing.T) {
	harness.OnlyAlone(t, "elections wait in the cluster, where a compaction ends them")
	if harness.IsEtcd(harness.Subject()) {
		t.Skip(etcdGivesUp)
	}
	e := newElector(t)
	get := func(lease int64) *later[*v3electionpb.CampaignResponse] { return e.campaign("value", lease) }
	wantEachInTurn(e.fixture, "e/", get, func(got *v3electionpb.CampaignResponse) error {
		_, err := e.pb.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: got.Leader})
		return err
	})
}

// The client reads nothing until more has been proclaimed than fits into its window, and then compacted.
func TestObserveReadLateAfterACompaction(t *testing.T) {
	e := newElector(t)
	led, err := e.campaign("first", e.lease(100)).get(e.fixture)
	e.must(err)
	stream, err := e.pb.Observe(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("e")})
	e.must(err)
	var revision int64
	proclaim := func(value string) {
		e.Helper()
		got, err := e.pb.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: led.Leader, Value: []byte(value)})
		e.must(err)
		revision = got.Header.Revision
	}
	see := func(value string) {
		e.Helper()
		for seen := ""; seen != value; {
			got, err := stream.Recv()
			e.must(err)
			seen = string(got.Kv.Value)
		}
	}
	see("first")
	for i := range 100 {
		proclaim(strings.Repeat("x", 30000) + fmt.Sprint(i))
	}
	proclaim("newest")
	_, err = e.client.Compact(e.ctx, revision)
	e.must(err)
	see("newest")
	proclaim("last")
	see("last")
}
