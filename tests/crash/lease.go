package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	leasesPerWorker = 5
	leaseTTL        = 100_000 // outlives the test: nothing expires by itself
)

// holdings are a worker's leases and keys, with the lease to which each key is attached.
type holdings struct {
	leases map[int64]bool
	keys   map[string]int64
}

func (h holdings) clone() holdings {
	return holdings{maps.Clone(h.leases), maps.Clone(h.keys)}
}

func (h holdings) equal(other holdings) bool {
	return maps.Equal(h.leases, other.leases) && maps.Equal(h.keys, other.keys)
}

func (h holdings) String() string {
	return fmt.Sprintf("leases %v, keys %v", slices.Sorted(maps.Keys(h.leases)), h.keys)
}

// leaseWorker is one client with its own leases and keys and one request in flight. Its knowledge is
// exact except for the one request that a kill left unanswered.
type leaseWorker struct {
	id      int64
	random  *rand.Rand
	has     holdings
	pending *holdings // the state if the unanswered request was executed
	acked   int
	failure error
}

func newLeaseWorker(id, seed int64) *leaseWorker {
	return &leaseWorker{id: id, random: rand.New(rand.NewSource(seed + id)),
		has: holdings{map[int64]bool{}, map[string]int64{}}}
}

func (l *leaseWorker) prefix() string { return fmt.Sprintf("l%02d/", l.id) }

// next makes a request and returns it with the state after it.
func (l *leaseWorker) next() (func(ctx context.Context, conn *grpc.ClientConn) error, holdings) {
	lease := l.id*100 + 1 + l.random.Int63n(leasesPerWorker)
	after := l.has.clone()
	if !l.has.leases[lease] {
		after.leases[lease] = true
		return func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: lease, TTL: leaseTTL})
			return err
		}, after
	}
	if l.random.Intn(4) == 0 {
		delete(after.leases, lease)
		maps.DeleteFunc(after.keys, func(_ string, on int64) bool { return on == lease })
		return func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewLeaseClient(conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease})
			return err
		}, after
	}
	txn := &pb.TxnRequest{}
	for range 1 + l.random.Intn(3) {
		key := fmt.Sprintf("%s%d", l.prefix(), len(txn.Success)*10+l.random.Intn(6))
		on := lease
		if l.random.Intn(6) == 0 {
			on = 0
		}
		after.keys[key] = on
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte(key), Lease: on, Value: []byte(strings.Repeat("v", 300))}}})
	}
	return func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pb.NewKVClient(conn).Txn(ctx, txn)
		return err
	}, after
}

// run sends requests until the server is killed.
func (l *leaseWorker) run(addr string) {
	conn, err := dial(addr)
	if err != nil {
		l.failure = err
		return
	}
	defer conn.Close()
	for l.failure == nil {
		request, after := l.next()
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		err := request(ctx, conn)
		cancel()
		switch status.Code(err) {
		case codes.OK:
			l.has = after
			l.acked++
		case codes.Unavailable, codes.Canceled, codes.Internal:
			l.pending = &after
			return
		default:
			l.failure = fmt.Errorf("worker %d: %w", l.id, err)
		}
	}
}

// found reads this worker's leases and keys from the server, and checks that they agree: the keys of
// a lease are those that name it.
func (l *leaseWorker) found(ctx context.Context, conn *grpc.ClientConn) (holdings, error) {
	found := holdings{map[int64]bool{}, map[string]int64{}}
	answer, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(l.prefix()), RangeEnd: []byte(l.prefix() + "~")})
	if err != nil {
		return found, err
	}
	for _, pair := range answer.Kvs {
		found.keys[string(pair.Key)] = pair.Lease
	}
	for lease := l.id*100 + 1; lease <= l.id*100+leasesPerWorker; lease++ {
		r, err := pb.NewLeaseClient(conn).LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: lease, Keys: true})
		if err != nil {
			return found, err
		}
		if r.TTL < 0 {
			continue
		}
		found.leases[lease] = true
		if r.TTL < leaseTTL-60 || r.GrantedTTL != leaseTTL {
			return found, fmt.Errorf("lease %d has %d of %d", lease, r.TTL, r.GrantedTTL)
		}
		named := 0
		for _, on := range found.keys {
			if on == lease {
				named++
			}
		}
		for _, key := range r.Keys {
			if found.keys[string(key)] != lease {
				return found, fmt.Errorf("lease %d has key %q, which names %d", lease, key, found.keys[string(key)])
			}
		}
		if named != len(r.Keys) {
			return found, fmt.Errorf("%d keys name lease %d, which has %d", named, lease, len(r.Keys))
		}
	}
	for key, on := range found.keys {
		if on != 0 && !found.leases[on] {
			return found, fmt.Errorf("key %q is attached to lease %d, which does not exist", key, on)
		}
	}
	return found, nil
}

// check compares the server's state with the acknowledged one, and determines whether the pending
// request was executed.
func (l *leaseWorker) check(ctx context.Context, conn *grpc.ClientConn) error {
	found, err := l.found(ctx, conn)
	if err != nil {
		return err
	}
	if l.pending != nil && found.equal(*l.pending) {
		l.has = *l.pending
	}
	l.pending = nil
	if !found.equal(l.has) {
		return fmt.Errorf("worker %d: acknowledged %v, found %v", l.id, l.has, found)
	}
	return nil
}
