package power

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const (
	workers       = 8
	keysPerWorker = 12
	leaseTTL      = 100_000 // outlives the test: nothing expires by itself
	callLimit     = 20 * time.Second
	// The administrator does something after this many requests of workers.
	adminInterval = 40
)

func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithDisableRetry(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// load are clients of one server. Requests that one of them has in flight touch nothing of another's,
// so the state of the keys that a client owns is known to it after every answer.
type load struct {
	*recording
	conn     *grpc.ClientConn
	seed     int64
	progress chan struct{}
}

type worker struct {
	*load
	id      int
	random  *rand.Rand
	counter int
	keys    map[string]int64 // those that exist, and their leases
	leases  map[int64]bool
}

func newWorker(id int, seed int64) *worker {
	return &worker{id: id, random: rand.New(rand.NewSource(seed*1000 + int64(id))), keys: map[string]int64{}, leases: map[int64]bool{}}
}

type headed interface{ GetHeader() *pb.ResponseHeader }

// write sends a request that changes keys, and notes it with its answer.
func (w *worker) write(changes []change, send func(ctx context.Context) (headed, error)) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	sent := w.position()
	answer, err := send(ctx)
	if err != nil {
		w.history.change(sent, 0, 0, changes)
		return 0, err
	}
	answered, revision := w.position(), answer.GetHeader().GetRevision()
	w.history.change(sent, answered, revision, changes)
	for {
		newest := w.newest.Load()
		if revision <= newest || w.newest.CompareAndSwap(newest, revision) {
			break
		}
	}
	for _, c := range changes {
		if c.delete {
			delete(w.keys, c.key)
		} else {
			w.keys[c.key] = c.lease
		}
	}
	return revision, nil
}

func (w *worker) key(i int) string { return fmt.Sprintf("w%02d/%02d", w.id, i) }

func (w *worker) value() string {
	w.counter++
	size := w.random.Intn(300)
	if w.random.Intn(10) == 0 {
		size = 4<<10 + w.random.Intn(40<<10)
	}
	bytes := make([]byte, size)
	w.random.Read(bytes)
	return fmt.Sprintf("%d:%d:%s", w.id, w.counter, bytes)
}

func (w *worker) someLease() int64 {
	if len(w.leases) == 0 || w.random.Intn(3) != 0 {
		return 0
	}
	all := slices.Sorted(maps.Keys(w.leases))
	return all[w.random.Intn(len(all))]
}

func putOf(c change) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(c.key), Value: []byte(c.value), Lease: c.lease}
}

func (w *worker) put() error {
	c := change{key: w.key(w.random.Intn(keysPerWorker)), value: w.value(), lease: w.someLease()}
	_, err := w.write([]change{c}, func(ctx context.Context) (headed, error) {
		return pb.NewKVClient(w.conn).Put(ctx, putOf(c))
	})
	return err
}

// txn puts two to four keys and deletes one more.
func (w *worker) txn() error {
	var changes []change
	txn := &pb.TxnRequest{}
	order := w.random.Perm(keysPerWorker)
	puts := 2 + w.random.Intn(3)
	for _, i := range order[:puts] {
		c := change{key: w.key(i), value: w.value(), lease: w.someLease()}
		changes = append(changes, c)
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: putOf(c)}})
	}
	gone := w.key(order[puts])
	if _, exists := w.keys[gone]; exists {
		changes = append(changes, change{key: gone, delete: true})
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(gone)}}})
	}
	_, err := w.write(changes, func(ctx context.Context) (headed, error) {
		return pb.NewKVClient(w.conn).Txn(ctx, txn)
	})
	return err
}

// deleteRange deletes the keys from one that exists on, up to a few.
func (w *worker) deleteRange() error {
	all := slices.Sorted(maps.Keys(w.keys))
	if len(all) == 0 {
		return w.put()
	}
	from := w.random.Intn(len(all))
	to := min(len(all), from+1+w.random.Intn(4))
	var changes []change
	for _, key := range all[from:to] {
		changes = append(changes, change{key: key, delete: true})
	}
	_, err := w.write(changes, func(ctx context.Context) (headed, error) {
		return pb.NewKVClient(w.conn).DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(all[from]), RangeEnd: []byte(all[to-1] + "\x00")})
	})
	return err
}

func (w *worker) grant() error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	id := w.lastLease.Add(1)
	sent := w.position()
	_, err := pb.NewLeaseClient(w.conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: leaseTTL})
	w.history.row(sent, w.answered(err), leaseTable, strconv.FormatInt(id, 10), true, 0)
	if err == nil {
		w.leases[id] = true
	}
	return err
}

// answered is the position after a request, 0 if it failed.
func (l *load) answered(err error) uint64 {
	if err != nil {
		return 0
	}
	return l.position()
}

// revoke deletes a lease and its keys.
func (w *worker) revoke() error {
	all := slices.Sorted(maps.Keys(w.leases))
	if len(all) == 0 {
		return w.grant()
	}
	id := all[w.random.Intn(len(all))]
	var changes []change
	for _, key := range slices.Sorted(maps.Keys(w.keys)) {
		if w.keys[key] == id {
			changes = append(changes, change{key: key, delete: true})
		}
	}
	sent, revision := w.position(), int64(0)
	revoke := func(ctx context.Context) (headed, error) {
		return pb.NewLeaseClient(w.conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
	}
	var err error
	if len(changes) > 0 {
		revision, err = w.write(changes, revoke)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		defer cancel()
		_, err = revoke(ctx)
	}
	w.history.row(sent, w.answered(err), leaseTable, strconv.FormatInt(id, 10), false, revision)
	if err == nil {
		delete(w.leases, id)
	}
	return err
}

func (w *worker) one() error {
	switch n := w.random.Intn(100); {
	case n < 55:
		return w.put()
	case n < 72:
		return w.txn()
	case n < 86:
		return w.deleteRange()
	case n < 94:
		return w.grant()
	default:
		return w.revoke()
	}
}

// run sends some requests, up to the first that fails: it is unknown whether that was executed.
func (w *worker) run(count int) error {
	for range count {
		if err := w.one(); err != nil {
			return fmt.Errorf("worker %d: %w", w.id, err)
		}
		w.progress <- struct{}{}
	}
	return nil
}

// -- The administrator --

func (l *load) compact(ctx context.Context, random *rand.Rand) error {
	target := l.newest.Load()
	target -= int64(random.Intn(int(target/3 + 1)))
	if target <= max(l.compacted, 1) || l.history.hasFailed() {
		return nil
	}
	l.compacted = target
	sent := l.position()
	_, err := pb.NewKVClient(l.conn).Compact(ctx, &pb.CompactionRequest{Revision: target, Physical: random.Intn(2) == 0})
	l.history.compact(sent, l.answered(err), target)
	return err
}

func (l *load) hash(ctx context.Context) error {
	sent := l.position()
	answer, err := pb.NewMaintenanceClient(l.conn).HashKV(ctx, &pb.HashKVRequest{})
	if err == nil {
		l.history.hash(sent, l.position(), answer.HashRevision, answer.CompactRevision, answer.Hash)
	}
	return err
}

func (l *load) defragment(ctx context.Context) error {
	_, err := pb.NewMaintenanceClient(l.conn).Defragment(ctx, &pb.DefragmentRequest{})
	return err
}

func (l *load) snapshot(ctx context.Context) error {
	stream, err := pb.NewMaintenanceClient(l.conn).Snapshot(ctx, &pb.SnapshotRequest{})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// user adds a user, or deletes the one before.
func (l *load) user(ctx context.Context, n int) error {
	auth := pb.NewAuthClient(l.conn)
	name := fmt.Sprintf("user%d-%d", l.seed, n/2)
	sent := l.position()
	var err error
	if n%2 == 0 {
		_, err = auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: "secret"})
	} else {
		_, err = auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: name})
	}
	l.history.row(sent, l.answered(err), userTable, name, n%2 == 0, 0)
	return err
}

func (l *load) role(ctx context.Context, n int) error {
	name := fmt.Sprintf("role%d-%d", l.seed, n)
	sent := l.position()
	_, err := pb.NewAuthClient(l.conn).RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name})
	l.history.row(sent, l.answered(err), roleTable, name, true, 0)
	return err
}

// administrate does something each time that workers have progressed, until they end.
func (l *load) administrate() error {
	random := rand.New(rand.NewSource(l.seed))
	seen, users, roles := 0, 0, 0
	for range l.progress {
		seen++
		if seen%adminInterval != 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		var err error
		switch random.Intn(10) {
		case 0, 1, 2:
			err = l.compact(ctx, random)
		case 3, 4:
			err = l.hash(ctx)
		case 5:
			err = l.defragment(ctx)
		case 6:
			err = l.snapshot(ctx)
		case 7, 8:
			err = l.user(ctx, users)
			users++
		default:
			err = l.role(ctx, roles)
			roles++
		}
		cancel()
		if err != nil {
			for range l.progress {
			}
			return fmt.Errorf("administrator: %w", err)
		}
	}
	return nil
}

// run has all workers send requests, and returns the first error.
func (l *load) run(all []*worker, count int) error {
	l.progress = make(chan struct{}, 1<<16)
	failures := make(chan error, len(all)+1)
	var group, admin sync.WaitGroup
	for _, w := range all {
		w.load = l
		group.Go(func() { failures <- w.run(count) })
	}
	admin.Go(func() { failures <- l.administrate() })
	group.Wait()
	close(l.progress)
	admin.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// protect turns authentication on, writes as root, and turns it off again.
func (l *load) protect(w *worker) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	auth := pb.NewAuthClient(l.conn)
	step := func(table int, key string, exists bool, send func(ctx context.Context) error) error {
		sent := l.position()
		err := send(ctx)
		l.history.row(sent, l.answered(err), table, key, exists, 0)
		return err
	}
	if err := step(userTable, "root", true, func(ctx context.Context) error {
		_, err := auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: "root", Password: "secret"})
		return err
	}); err != nil {
		return err
	}
	if err := step(roleTable, "root", true, func(ctx context.Context) error {
		_, err := auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: "root"})
		return err
	}); err != nil {
		return err
	}
	if _, err := auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}); err != nil {
		return err
	}
	if err := step(authTable, "authEnabled", true, func(ctx context.Context) error {
		_, err := auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return err
	}); err != nil {
		return err
	}
	answer, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "secret"})
	if err != nil {
		return err
	}
	withToken := metadata.AppendToOutgoingContext(ctx, "token", answer.Token)
	for range 10 {
		c := change{key: w.key(w.random.Intn(keysPerWorker)), value: w.value()}
		if _, err := w.write([]change{c}, func(context.Context) (headed, error) {
			return pb.NewKVClient(l.conn).Put(withToken, putOf(c))
		}); err != nil {
			return err
		}
	}
	return step(authTable, "authEnabled", false, func(context.Context) error {
		_, err := auth.AuthDisable(withToken, &pb.AuthDisableRequest{})
		return err
	})
}
