package cluster

import (
	"context"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

// refusal is what a call without a quorum ended with.
func refusal(err error) string {
	return status.Convert(err).Code().String() + ": " + status.Convert(err).Message()
}

// withoutQuorum are calls that need one.
var withoutQuorum = map[string]func(ctx context.Context, conn *grpc.ClientConn) error{
	"a put": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("q")})
		return err
	},
	"a transaction": func(ctx context.Context, conn *grpc.ClientConn) error {
		put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("q")}}}
		_, err := pb.NewKVClient(conn).Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put}})
		return err
	},
	"a linearizable get": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("k")})
		return err
	},
	"a lease": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 10})
		return err
	},
}

// both makes each call directly and through the front at the same time.
func (f *fixture) both(limit time.Duration, direct, via *grpc.ClientConn) {
	f.Helper()
	var all sync.WaitGroup
	for name, call := range withoutQuorum {
		var ends [2]string
		var one sync.WaitGroup
		for n, conn := range []*grpc.ClientConn{via, direct} {
			one.Add(1)
			go func() {
				defer one.Done()
				ctx, cancel := context.WithTimeout(f.ctx, limit)
				defer cancel()
				ends[n] = refusal(call(ctx, conn))
			}()
		}
		all.Add(1)
		go func() {
			defer all.Done()
			one.Wait()
			f.wantSame(name, ends[0], ends[1])
		}()
	}
	all.Wait()
}

// deadlines checks that calls end when their client does not wait any longer.
func (f *fixture) deadlines(via *grpc.ClientConn) {
	f.Helper()
	for name, call := range withoutQuorum {
		ctx, cancel := context.WithTimeout(f.ctx, 200*time.Millisecond)
		if code := status.Code(call(ctx, via)); code != codes.DeadlineExceeded {
			f.Errorf("%s with a short deadline: %v", name, code)
		}
		cancel()
	}
}

// Without a quorum, writes and linearizable reads fail as they do in etcd, while serializable reads and
// watches continue; with the quorum everything works again, and no watch has missed anything.
func TestWithoutQuorum(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		first := f.put(f.via, "k", "1")
		f.put(f.via, "k", "2")
		running := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
		f.follow(running, first, first+1)
		for _, member := range f.cluster.Members[:2] {
			member.Kill()
		}
		last := f.cluster.Members[2]
		f.cluster.AwaitLoss(last)
		f.awaitRefusal(last)

		f.both(20*time.Second, f.dial(last.Addr), f.dial(f.front.Addr))
		f.deadlines(f.dial(f.front.Addr))
		answer, err := f.via.Get(f.ctx, "k", clientv3.WithSerializable())
		f.must(err)
		if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "2" {
			t.Errorf("a serializable read without a quorum: %v", answer.Kvs)
		}
		f.follow(f.via.Watch(f.ctx, "k", clientv3.WithRev(first)), first, first+1)

		f.cluster.Start()
		f.eventually("a write", func() bool {
			ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
			defer cancel()
			_, err = f.via.Put(ctx, "other", "x")
			return err == nil
		})
		// Puts of the key "q" may have happened meanwhile.
		now := f.put(f.via, "k", "3")
		answer, err = f.via.Get(f.ctx, "k")
		f.must(err)
		if string(answer.Kvs[0].Value) != "3" || answer.Header.Revision < now {
			t.Errorf("a read after the loss: %v", answer)
		}
		for response := range running {
			f.must(response.Err())
			if n := len(response.Events); n > 0 {
				if n != 1 || response.Events[0].Kv.ModRevision != now {
					t.Errorf("the running watch received %v", response.Events)
				}
				break
			}
		}
	})
}

// awaitRefusal waits until the front has noticed the loss: until then it may have a connection to a
// member that does not live any more.
func (f *fixture) awaitRefusal(last *harness.Member) {
	f.Helper()
	f.eventually("the front to reach the last member", func() bool {
		ctx, cancel := context.WithTimeout(f.ctx, 20*time.Second)
		defer cancel()
		answer, err := pb.NewMaintenanceClient(f.dial(f.front.Addr)).Status(ctx, &pb.StatusRequest{})
		return err == nil && answer.Leader == 0
	})
}

// Whichever member is lost, everything works with the others.
func TestWithoutMinority(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("the front leads to one member")
	}
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		first := f.put(f.via, "k", "0")
		events := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
		next := first
		for range f.cluster.Members {
			leader := f.cluster.AwaitLeader()
			leader.Kill()
			f.cluster.AwaitLeader()
			f.eventually("a linearizable read", func() bool {
				ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
				defer cancel()
				answer, err := f.via.Get(ctx, "k")
				return err == nil && answer.Kvs[0].ModRevision == next
			})
			f.follow(events, next, next)
			next = f.put(f.via, "k", "1")
			leader.Begin()
			leader.Ready()
		}
		f.follow(events, next, next)
	})
}
