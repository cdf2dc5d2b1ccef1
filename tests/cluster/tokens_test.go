package cluster

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

// mixer makes calls with the tokens of several users over one connection, so that the front has all of
// them under way at the same time.
type mixer struct {
	*fixture
	conn     *grpc.ClientConn
	tokens   map[string]string // by the prefix that the token may use; "": no token
	lease    map[string]int64  // of each
	answered atomic.Int64
	canceled atomic.Int64
}

// cancelsMax is below --reset-burst, beyond which the front closes the connection.
const cancelsMax = 500

func (f *fixture) mixer(users map[string]string) *mixer {
	f.Helper()
	m := &mixer{fixture: f, conn: f.dial(f.front.Addr), tokens: map[string]string{"": ""}, lease: map[string]int64{}}
	for prefix, user := range users {
		answer, err := pb.NewAuthClient(m.conn).Authenticate(f.ctx, &pb.AuthenticateRequest{Name: user, Password: user + "pw"})
		f.must(err)
		m.tokens[prefix] = answer.Token
		lease, err := pb.NewLeaseClient(m.conn).LeaseGrant(m.with(f.ctx, prefix), &pb.LeaseGrantRequest{TTL: 600})
		f.must(err)
		m.lease[prefix] = lease.ID
	}
	return m
}

func (m *mixer) with(ctx context.Context, prefix string) context.Context {
	if m.tokens[prefix] == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "token", m.tokens[prefix])
}

// call makes one call of any kind for a key, and returns its error.
func (m *mixer) call(ctx context.Context, kind int, key string, lease int64) error {
	kv, k := pb.NewKVClient(m.conn), []byte(key)
	switch kind {
	case 0, 1:
		_, err := kv.Range(ctx, &pb.RangeRequest{Key: k, Serializable: kind == 1})
		return err
	case 2:
		_, err := kv.Range(ctx, &pb.RangeRequest{Key: k, Revision: 1 << 40, Serializable: true})
		if status.Code(err) == codes.OutOfRange {
			return nil // the revision is in the future, and this client may know that
		}
		return err
	case 3:
		_, err := kv.Put(ctx, &pb.PutRequest{Key: k, Value: k})
		return err
	case 4:
		read := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: k}}}
		_, err := kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{read}})
		return err
	case 5:
		return m.keepAlive(ctx, lease)
	default:
		return m.watch(ctx, k)
	}
}

func (m *mixer) keepAlive(ctx context.Context, lease int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := pb.NewLeaseClient(m.conn).LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}) // if it fails, Recv says why
	_, err = stream.Recv()
	return err
}

func (m *mixer) watch(ctx context.Context, key []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := pb.NewWatchClient(m.conn).Watch(ctx)
	if err != nil {
		return err
	}
	create := &pb.WatchCreateRequest{Key: key}
	// If it fails, Recv says why.
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}})
	answer, err := stream.Recv()
	if err == nil && answer.Canceled {
		err = status.Error(codes.PermissionDenied, answer.CancelReason)
	}
	return err
}

// once makes a random call and returns what is wrong with its answer.
func (m *mixer) once(random *rand.Rand, prefix, other string) string {
	kind := random.Intn(7)
	key, mine := prefix+"k", true
	if random.Intn(2) == 0 {
		key, mine = other+"k", false
	}
	ctx, cancel := context.WithTimeout(m.with(m.ctx, prefix), 20*time.Second)
	defer cancel()
	canceled := random.Intn(8) == 0 && m.canceled.Add(1) < cancelsMax
	if canceled {
		time.AfterFunc(time.Duration(random.Intn(3000))*time.Microsecond, cancel)
	}
	err := m.call(ctx, kind, key, m.lease[prefix])
	m.answered.Add(1)
	permitted := kind == 5 && prefix != "" || mine && prefix != ""
	code := status.Code(err)
	refused := code == codes.PermissionDenied || code == codes.InvalidArgument || code == codes.Unauthenticated
	switch {
	case canceled && code == codes.Canceled:
		return ""
	case kind == 5 && prefix == "": // etcd renews a lease for every caller, whatever its rights
		return ""
	case permitted && err != nil, !permitted && !refused:
		return fmt.Sprintf("the user of %q got %v for a call of kind %d with %q", prefix, err, kind, key)
	}
	return ""
}

// Many users whose calls of every kind are under way at the same time on one connection, some of them
// canceled at any moment: no call is ever answered by the rights of another.
func TestTokensAreNotMixed(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("about the front's own sharing of connections and questions")
	}
	onEach(t, func(t *testing.T, binary string) {
		f := authFixture(t, binary)
		f.enable()
		m := f.mixer(map[string]string{"a/": "anna", "b/": "ben"})
		others := map[string]string{"a/": "b/", "b/": "a/", "": "a/"}
		var group sync.WaitGroup
		var lock sync.Mutex
		var wrong []string
		until := time.Now().Add(2 * time.Second)
		for prefix, other := range others {
			for i := range 12 {
				group.Add(1)
				go func() {
					defer group.Done()
					random := rand.New(rand.NewSource(int64(i)))
					for time.Now().Before(until) {
						if text := m.once(random, prefix, other); text != "" {
							lock.Lock()
							wrong = append(wrong, text)
							lock.Unlock()
						}
					}
				}()
			}
		}
		group.Wait()
		if len(wrong) > 0 {
			t.Errorf("%d of %d calls:\n%s", len(wrong), m.answered.Load(), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
		}
		if m.answered.Load() < 200 {
			t.Errorf("only %d calls", m.answered.Load())
		}
		root := f.clientAs("root", "rootpw", f.front.URL)
		answer, err := root.Get(f.ctx, "", clientv3.WithPrefix())
		f.must(err)
		for _, kv := range answer.Kvs {
			if string(kv.Key) != string(kv.Value) {
				t.Errorf("%q was written as %q", kv.Key, kv.Value)
			}
		}
	})
}
