package watch

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	writtenKeys = 60
	valueMax    = 2048
	callLimit   = 20 * time.Second
)

func keyName(n int) string { return fmt.Sprintf("k/%02d", n) }

// write is one acknowledged request: its puts in order, and the number of deleted keys.
type write struct {
	revision int64
	puts     []KV // key and value only
	deleted  int64
}

// writer changes keys until its context ends, and remembers the acknowledged writes.
type writer struct {
	*recorder
	random *rand.Rand
	conn   *grpc.ClientConn
	id     int
	pause  time.Duration // between writes, at most
	limit  time.Duration // of a call
	acked  []write
	count  int
}

func (w *writer) run(ctx context.Context) {
	defer w.users.Done()
	kv := pb.NewKVClient(w.conn)
	for ctx.Err() == nil {
		txn := w.next()
		call, cancel := context.WithTimeout(context.Background(), w.limit)
		answer, err := kv.Txn(call, txn)
		cancel()
		if err != nil {
			// The history will show whether it was executed.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		w.learn(answer.Header.Revision)
		w.note(txn, answer)
		if w.pause > 0 {
			time.Sleep(time.Duration(w.random.Int63n(int64(w.pause))))
		}
	}
}

func (w *writer) note(txn *pb.TxnRequest, answer *pb.TxnResponse) {
	done := write{revision: answer.Header.Revision}
	for n, op := range txn.Success {
		if put := op.GetRequestPut(); put != nil {
			done.puts = append(done.puts, KV{Key: string(put.Key), Value: string(put.Value)})
		} else {
			done.deleted += answer.Responses[n].GetResponseDeleteRange().Deleted
		}
	}
	if len(done.puts) > 0 || done.deleted > 0 {
		w.acked = append(w.acked, done)
	}
}

// next returns mostly puts, and sometimes a delete, a delete of a range, or several operations on
// different keys.
func (w *writer) next() *pb.TxnRequest {
	txn := &pb.TxnRequest{}
	add := func(op *pb.RequestOp) { txn.Success = append(txn.Success, op) }
	switch n := w.random.Intn(100); {
	case n < 65:
		add(w.put(w.random.Intn(writtenKeys)))
	case n < 78:
		add(remove(w.random.Intn(writtenKeys), 0))
	case n < 82:
		add(remove(w.random.Intn(writtenKeys-8), 8))
	default:
		for _, key := range w.random.Perm(writtenKeys)[:2+w.random.Intn(4)] {
			if w.random.Intn(4) == 0 {
				add(remove(key, 0))
			} else {
				add(w.put(key))
			}
		}
	}
	return txn
}

func (w *writer) put(key int) *pb.RequestOp {
	w.count++
	value := fmt.Sprintf("%d:%d:", w.id, w.count) + strings.Repeat("x", w.random.Intn(valueMax))
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(keyName(key)), Value: []byte(value)}}}
}

func remove(key, more int) *pb.RequestOp {
	q := &pb.DeleteRangeRequest{Key: []byte(keyName(key))}
	if more > 0 {
		q.RangeEnd = []byte(keyName(key + more))
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: q}}
}

// checkAcked checks that each acknowledged write is in the truth at its revision, complete and in order.
func checkAcked(truth *Truth, acked []write) error {
	for _, done := range acked {
		events := truth.at(done.revision)
		var puts []Event
		for _, event := range events {
			if !event.Delete {
				puts = append(puts, event)
			}
		}
		if len(puts) != len(done.puts) || len(events)-len(puts) != int(done.deleted) {
			return fmt.Errorf("revision %d has %d puts and %d deletes, but %d and %d were acknowledged",
				done.revision, len(puts), len(events)-len(puts), len(done.puts), done.deleted)
		}
		for n, put := range done.puts {
			if puts[n].KV.Key != put.Key || puts[n].KV.Value != put.Value {
				return fmt.Errorf("%s, but %s=%.20s was acknowledged", &puts[n], put.Key, put.Value)
			}
		}
	}
	return nil
}
