package main

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	callLimit = 1500 * time.Millisecond
	retryRest = 20 * time.Millisecond
)

// now is a time that all processes share.
func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

func connect(addr string) (*clientv3.Client, error) {
	quick := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: retryRest, Multiplier: 1.5, MaxDelay: 10 * retryRest},
		MinConnectTimeout: time.Second}
	return clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop(),
		DialKeepAliveTime: 6 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(quick)}})
}

// worker is a client of clientv3 with one operation at a time.
type worker struct {
	*clientv3.Client
	book       *book
	locks      lockpb.LockClient
	number     int
	count      int64
	random     *rand.Rand
	start, end int64
	seen       map[string]int64 // mod revisions of keys that this client has read
}

func (w *worker) run() {
	defer w.Close()
	for now() < w.end {
		w.count++
		answered := true
		switch dice := w.random.Intn(1000); {
		case dice < 8:
			answered = w.useLease()
		case dice < 12:
			answered = w.useLock()
		default:
			answered = w.step((now() - w.start) / cellNanos)
		}
		if !answered {
			time.Sleep(retryRest)
		}
	}
}

// record fills in how an operation ended.
func (w *worker) record(o *Op, call int64, err error) bool {
	o.Client, o.Call, o.Return, o.Outcome = fmt.Sprint("g", w.number), call, now(), Done
	if err != nil {
		o.Error, o.Outcome = err.Error(), Unknown
		if isRefusal(err) {
			o.Outcome = Refused
		}
	}
	w.book.add(o)
	return err == nil
}

// isRefusal says whether an error means that nothing was changed: the server has decided so, or it was never reached.
func isRefusal(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.OutOfRange:
		return true
	case codes.Unavailable:
		return strings.Contains(err.Error(), "rror while dialing")
	case codes.Unknown: // clientv3's own type
		return strings.Contains(err.Error(), "requested lease not found")
	}
	return false
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callLimit)
}

// step does one operation on the keys of a cell.
func (w *worker) step(cell int64) bool {
	o := w.any(cell)
	ctx, cancel := limited()
	defer cancel()
	call := now()
	return w.record(o, call, w.execute(ctx, o))
}

func (w *worker) any(cell int64) *Op {
	key := cellKey(cell, w.random.Intn(keysPerCell))
	switch dice := w.random.Intn(100); {
	case dice < 22:
		return w.anyTxn(cell, key)
	case dice < 52:
		return &Op{Kind: "put", Then: []Action{w.put(key)}}
	case dice < 60:
		return &Op{Kind: "delete", Then: []Action{{Kind: "delete", Key: key, Prev: dice%2 == 0}}}
	case dice < 61 && joined(cell):
		return &Op{Kind: "delete", Then: []Action{{Kind: "delete", Key: cellPrefix(cell), Prefix: true, Prev: true}}}
	case dice < 66 && joined(cell):
		return &Op{Kind: "list", Then: []Action{{Kind: "get", Key: cellPrefix(cell), Prefix: true}}}
	case dice < 70 && w.seen[key] > 0:
		return &Op{Kind: "get from the past", Then: []Action{{Kind: "get", Key: key, Revision: w.seen[key]}}}
	case dice < 80:
		return &Op{Kind: "serializable get", Serializable: true, Then: []Action{{Kind: "get", Key: key}}}
	}
	return &Op{Kind: "get", Then: []Action{{Kind: "get", Key: key}}}
}

func (w *worker) put(key string) Action {
	return Action{Kind: "put", Key: key, Value: fmt.Sprintf("g%d-%d", w.number, w.count), Prev: w.random.Intn(2) == 0}
}

// anyTxn is on one key, or in every second cell on two.
func (w *worker) anyTxn(cell int64, key string) *Op {
	o := &Op{Kind: "txn", Then: []Action{w.put(key)}, Else: []Action{{Kind: "get", Key: key}}}
	compares := []Compare{
		{Key: key, Field: "version", Relation: "<", Number: w.random.Int63n(4)},
		{Key: key, Field: "create", Relation: "=", Number: 0},
		{Key: key, Field: "mod", Relation: "=", Number: w.seen[key]},
		{Key: key, Field: "mod", Relation: ">", Number: w.seen[key]},
		{Key: key, Field: "value", Relation: "!=", Text: "something"},
	}
	o.If = []Compare{compares[w.random.Intn(len(compares))]}
	if w.random.Intn(4) == 0 {
		o.Else = []Action{{Kind: "delete", Key: key}}
	}
	if other := cellKey(cell, w.random.Intn(keysPerCell)); joined(cell) && other != key {
		o.Then = append(o.Then, w.put(other), Action{Kind: "get", Key: other})
		o.If = append(o.If, Compare{Key: other, Field: "version", Relation: "<", Number: 1 + w.random.Int63n(20)})
	}
	return o
}

// execute sends an operation with the call that a program would use for it.
func (w *worker) execute(ctx context.Context, o *Op) error {
	if len(o.If) == 0 && len(o.Then) == 1 {
		answer, err := w.Do(ctx, operation(&o.Then[0], o.Serializable))
		if err != nil {
			return err
		}
		o.Succeeded = true
		w.single(o, &answer)
		return nil
	}
	answer, err := w.Txn(ctx).If(conditions(o.If)...).Then(operations(o.Then)...).Else(operations(o.Else)...).Commit()
	if err != nil {
		return err
	}
	o.Succeeded, o.Revision = answer.Succeeded, answer.Header.Revision
	for _, r := range answer.Responses {
		o.Results = append(o.Results, w.result(r))
	}
	return nil
}

func (w *worker) single(o *Op, answer *clientv3.OpResponse) {
	r := &pb.ResponseOp{}
	switch {
	case answer.Get() != nil:
		r.Response = &pb.ResponseOp_ResponseRange{ResponseRange: (*pb.RangeResponse)(answer.Get())}
		o.Revision = answer.Get().Header.Revision
	case answer.Put() != nil:
		r.Response = &pb.ResponseOp_ResponsePut{ResponsePut: (*pb.PutResponse)(answer.Put())}
		o.Revision = answer.Put().Header.Revision
	default:
		r.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: (*pb.DeleteRangeResponse)(answer.Del())}
		o.Revision = answer.Del().Header.Revision
	}
	o.Results = []Result{w.result(r)}
}

func (w *worker) result(r *pb.ResponseOp) (result Result) {
	kvs := r.GetResponseRange().GetKvs()
	if p := r.GetResponsePut().GetPrevKv(); p != nil {
		kvs = []*mvccpb.KeyValue{p}
	}
	if d := r.GetResponseDeleteRange(); d != nil {
		kvs, result.Deleted = d.PrevKvs, d.Deleted
	}
	for _, kv := range kvs {
		result.KVs = append(result.KVs, kvOf(kv))
		w.seen[string(kv.Key)] = kv.ModRevision
	}
	return result
}

func kvOf(kv *mvccpb.KeyValue) KV {
	value := string(kv.Value)
	if strings.HasPrefix(string(kv.Key), "/registry/") {
		value = objectValue.FindString(value)
	}
	return KV{string(kv.Key), value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease}
}

func operations(actions []Action) (list []clientv3.Op) {
	for i := range actions {
		list = append(list, operation(&actions[i], false))
	}
	return list
}

func operation(a *Action, serializable bool) clientv3.Op {
	var options []clientv3.OpOption
	for _, option := range []struct {
		set  bool
		with clientv3.OpOption
	}{
		{a.Prefix, clientv3.WithPrefix()}, {a.Prev, clientv3.WithPrevKV()}, {a.Revision > 0, clientv3.WithRev(a.Revision)},
		{serializable, clientv3.WithSerializable()}, {a.Lease != 0, clientv3.WithLease(clientv3.LeaseID(a.Lease))},
	} {
		if option.set {
			options = append(options, option.with)
		}
	}
	switch a.Kind {
	case "get":
		return clientv3.OpGet(a.Key, options...)
	case "put":
		return clientv3.OpPut(a.Key, a.Value, options...)
	}
	return clientv3.OpDelete(a.Key, options...)
}

func conditions(list []Compare) (compares []clientv3.Cmp) {
	for _, c := range list {
		switch c.Field {
		case "value":
			compares = append(compares, clientv3.Compare(clientv3.Value(c.Key), c.Relation, c.Text))
		case "version":
			compares = append(compares, clientv3.Compare(clientv3.Version(c.Key), c.Relation, c.Number))
		case "create":
			compares = append(compares, clientv3.Compare(clientv3.CreateRevision(c.Key), c.Relation, c.Number))
		default:
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(c.Key), c.Relation, c.Number))
		}
	}
	return compares
}
