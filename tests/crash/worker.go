// Package crash kills a server under load repeatedly, and compares its state with what it acknowledged.
package crash

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	keysPerWorker = 6
	callLimit     = 20 * time.Second
)

// version is the expected state of a key.
type version struct {
	value    string
	exists   bool
	revision int64 // of the last write; 0 if there was none
}

// write is one request. It sets all its keys or none.
type write struct {
	keys     []string
	value    string
	delete   bool
	revision int64 // 0: not acknowledged
}

// worker is one client with its own keys and one request in flight. Its knowledge is exact except for
// the one request that a kill left unanswered.
type worker struct {
	id      int
	random  *rand.Rand
	counter int
	state   map[string]version
	acked   []write // in this run of the server
	pending *write  // sent, but not answered
	seen    int64   // the highest revision in any answer
	failure error   // an error that a running server must not return
}

func newWorker(id int, seed int64) *worker {
	return &worker{id: id, random: rand.New(rand.NewSource(seed + int64(id))), state: map[string]version{}}
}

func (w *worker) key(i int) string { return fmt.Sprintf("w%02d/%d", w.id, i) }
func (w *worker) prefix() string   { return fmt.Sprintf("w%02d/", w.id) }

// run writes until the server is killed.
func (w *worker) run(addr string) {
	w.acked, w.pending = nil, nil
	conn, err := dial(addr)
	if err != nil {
		w.failure = err
		return
	}
	defer conn.Close()
	kv := pb.NewKVClient(conn)
	for w.failure == nil {
		next := w.next()
		revision, err := send(kv, next)
		switch status.Code(err) {
		case codes.OK:
			next.revision = revision
			w.seen = max(w.seen, revision)
			w.acked = append(w.acked, next)
			w.apply(next)
		case codes.Unavailable, codes.Canceled, codes.Internal:
			w.pending = &next
			return
		default:
			w.failure = fmt.Errorf("worker %d: %w", w.id, err)
		}
	}
}

func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// next picks a put, a transaction over two keys, or a delete of an existing key.
func (w *worker) next() write {
	w.counter++
	value := fmt.Sprintf("%d:%d:", w.id, w.counter)
	if w.random.Intn(20) == 0 {
		value += strings.Repeat("x", w.random.Intn(64<<10))
	}
	// Keys 0 and 1 are only ever written together.
	if w.random.Intn(3) == 0 {
		return write{keys: []string{w.key(0), w.key(1)}, value: value}
	}
	key := w.key(2 + w.random.Intn(keysPerWorker-2))
	if w.state[key].exists && w.random.Intn(5) == 0 {
		return write{keys: []string{key}, delete: true}
	}
	return write{keys: []string{key}, value: value}
}

func send(kv pb.KVClient, w write) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	type headed interface{ GetHeader() *pb.ResponseHeader }
	var answer headed
	var err error
	switch {
	case w.delete:
		answer, err = kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(w.keys[0])})
	case len(w.keys) == 1:
		answer, err = kv.Put(ctx, &pb.PutRequest{Key: []byte(w.keys[0]), Value: []byte(w.value)})
	default:
		txn := &pb.TxnRequest{}
		for _, key := range w.keys {
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(w.value)}}})
		}
		answer, err = kv.Txn(ctx, txn)
	}
	if err != nil {
		return 0, err
	}
	return answer.GetHeader().GetRevision(), nil
}

func (w *worker) apply(done write) {
	for _, key := range done.keys {
		w.state[key] = version{value: done.value, exists: !done.delete, revision: done.revision}
	}
}

// check compares the server's state with what it acknowledged, and determines whether the pending
// write was executed.
func (w *worker) check(ctx context.Context, kv pb.KVClient) error {
	answer, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(w.prefix()), RangeEnd: []byte(w.prefix() + "~")})
	if err != nil {
		return err
	}
	found := map[string]version{}
	for _, pair := range answer.Kvs {
		found[string(pair.Key)] = version{string(pair.Value), true, pair.ModRevision}
	}
	applied := 0
	for i := range keysPerWorker {
		key := w.key(i)
		switch {
		case matches(found[key], w.state[key]):
		case w.pending != nil && w.pending.makes(key, found[key], w.lastAcked()):
			applied++
		default:
			return fmt.Errorf("%s: acknowledged %s, found %s, pending %s",
				key, w.state[key], found[key], w.pending)
		}
	}
	if applied == 0 {
		return nil
	}
	if applied != len(w.pending.keys) {
		return fmt.Errorf("worker %d: only a part of %s was applied", w.id, w.pending)
	}
	for _, key := range w.pending.keys {
		w.pending.revision = found[key].revision
		if found[key].revision != found[w.pending.keys[0]].revision {
			return fmt.Errorf("worker %d: keys of %s have two revisions", w.id, w.pending)
		}
	}
	w.apply(*w.pending)
	return nil
}

func matches(found, want version) bool {
	if !want.exists {
		return !found.exists
	}
	return found == want
}

func (w *worker) lastAcked() int64 {
	if len(w.acked) == 0 {
		return 0
	}
	return w.acked[len(w.acked)-1].revision
}

// makes says whether a found version is the result of this write, after all acknowledged ones.
func (p *write) makes(key string, found version, after int64) bool {
	for _, own := range p.keys {
		if own == key {
			if p.delete {
				return !found.exists
			}
			return found.exists && found.value == p.value && found.revision > after
		}
	}
	return false
}

// checkHistory reads acknowledged writes back at their own revisions.
func (w *worker) checkHistory(ctx context.Context, kv pb.KVClient, compacted int64, most int) error {
	for n, done := range w.acked {
		if done.revision < compacted || (n%(1+len(w.acked)/most) != 0 && n != len(w.acked)-1) {
			continue
		}
		answer, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(done.keys[0]), Revision: done.revision})
		if err != nil {
			return fmt.Errorf("%s at %d: %w", done.keys[0], done.revision, err)
		}
		if done.delete {
			if len(answer.Kvs) != 0 {
				return fmt.Errorf("%s exists at %d, where it was deleted", done.keys[0], done.revision)
			}
			continue
		}
		if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != done.value || answer.Kvs[0].ModRevision != done.revision {
			return fmt.Errorf("%s is missing or different", &done)
		}
	}
	return nil
}

func (v version) String() string {
	if !v.exists {
		return fmt.Sprintf("nothing@%d", v.revision)
	}
	return fmt.Sprintf("%.20s@%d", v.value, v.revision)
}

func (p *write) String() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%v=%.20s@%d", p.keys, p.value, p.revision)
}
