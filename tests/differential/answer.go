package differential

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const callLimit = 20 * time.Second

// side is one of the two servers. It is called without retries, because every answer counts.
type side struct {
	name        string
	connection  *grpc.ClientConn
	kv          pb.KVClient
	maintenance pb.MaintenanceClient
	lease       pb.LeaseClient
	auth        pb.AuthClient
	cluster     pb.ClusterClient
	watch       pb.WatchClient
	tokens      [slotCount + 1]string // issued by this server, by slot
}

func dial(name, addr string) (*side, error) {
	connection, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	return &side{
		name: name, connection: connection, kv: pb.NewKVClient(connection),
		maintenance: pb.NewMaintenanceClient(connection), lease: pb.NewLeaseClient(connection),
		auth: pb.NewAuthClient(connection), cluster: pb.NewClusterClient(connection),
		watch: pb.NewWatchClient(connection),
	}, nil
}

// answer is a server's answer: a message, or an error's code and text.
type answer struct {
	message proto.Message
	code    codes.Code
	text    string
}

func (a answer) String() string {
	if a.code != codes.OK {
		return fmt.Sprintf("error %v %q", a.code, a.text)
	}
	text := fmt.Sprint(a.message)
	if len(text) > 4000 {
		text = text[:4000] + "…"
	}
	return "{" + text + "}"
}

func (s *side) call(r request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	ctx = s.withToken(ctx, r)
	message, err, is := s.callAuth(ctx, r)
	if !is {
		message, err, is = s.callUpkeep(ctx, r)
	}
	if !is {
		message, err = s.callKeys(ctx, r)
	}
	if err != nil {
		return answer{code: status.Code(err), text: status.Convert(err).Message()}
	}
	return answer{message: message}
}

// callKeys is call for keys and leases.
func (s *side) callKeys(ctx context.Context, r request) (message proto.Message, err error) {
	switch body := r.body.(type) {
	case *pb.RangeRequest:
		if r.stream {
			message, err = s.rangeStream(ctx, body)
		} else {
			message, err = s.kv.Range(ctx, body)
		}
	case *pb.PutRequest:
		message, err = s.kv.Put(ctx, body)
	case *pb.DeleteRangeRequest:
		message, err = s.kv.DeleteRange(ctx, body)
	case *pb.TxnRequest:
		message, err = s.kv.Txn(ctx, body)
	case *pb.CompactionRequest:
		message, err = s.kv.Compact(ctx, body)
	case *pb.LeaseGrantRequest:
		message, err = s.lease.LeaseGrant(ctx, body)
	case *pb.LeaseRevokeRequest:
		message, err = s.lease.LeaseRevoke(ctx, body)
	case *pb.LeaseTimeToLiveRequest:
		message, err = s.lease.LeaseTimeToLive(ctx, body)
	case *pb.LeaseLeasesRequest:
		message, err = s.lease.LeaseLeases(ctx, body)
	case *pb.LeaseKeepAliveRequest:
		message, err = s.keepAlive(ctx, body)
	default:
		panic(fmt.Sprintf("no call for %T", body))
	}
	return message, err
}

// rangeStream joins the chunks, whose sizes may differ between servers, and checks the fields of each
// chunk.
func (s *side) rangeStream(ctx context.Context, r *pb.RangeRequest) (proto.Message, error) {
	stream, err := s.kv.RangeStream(ctx, r)
	if err != nil {
		return nil, err
	}
	whole := &pb.RangeResponse{}
	last := false
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			if !last {
				return nil, status.Error(codes.DataLoss, "stream ended without a chunk that has the header")
			}
			return whole, nil
		}
		if err != nil {
			return nil, err
		}
		part := chunk.RangeResponse
		if last {
			return nil, status.Error(codes.DataLoss, "a chunk after the one that has the header")
		}
		last = part.GetHeader() != nil
		if !last && (part.GetMore() || part.GetCount() != 0 || len(part.GetKvs()) == 0) {
			return nil, status.Error(codes.DataLoss, "a chunk before the last has more, count or no keys")
		}
		proto.Merge(whole, part)
	}
}

// normalise removes differences that two correct servers may have: their IDs, and the order of equal
// elements.
func normalise(r request, a answer) answer {
	if a.message == nil {
		return a
	}
	type headed interface{ GetHeader() *pb.ResponseHeader }
	if h := a.message.(headed).GetHeader(); h != nil {
		h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
	}
	switch body := r.body.(type) {
	case *pb.RangeRequest:
		normaliseRange(body, a.message.(*pb.RangeResponse))
	case *pb.TxnRequest:
		normaliseTxn(body, a.message.(*pb.TxnResponse))
	default:
		normaliseLease(a.message)
		normaliseUpkeep(a.message)
	}
	return a
}

func normaliseTxn(t *pb.TxnRequest, answer *pb.TxnResponse) {
	ops := t.Failure
	if answer.GetSucceeded() {
		ops = t.Success
	}
	if len(ops) != len(answer.GetResponses()) {
		return // a difference that is reported later
	}
	for i, op := range ops {
		if r := op.GetRequestRange(); r != nil && answer.Responses[i].GetResponseRange() != nil {
			normaliseRange(r, answer.Responses[i].GetResponseRange())
		}
		if n := op.GetRequestTxn(); n != nil && answer.Responses[i].GetResponseTxn() != nil {
			normaliseTxn(n, answer.Responses[i].GetResponseTxn())
		}
	}
}

// normaliseRange sorts keys with the same sort value by key. Where the limit divides such a group,
// the remaining keys are unspecified, and they are blanked.
func normaliseRange(r *pb.RangeRequest, answer *pb.RangeResponse) {
	compare := sortComparison(r)
	if compare == nil {
		return
	}
	kvs := answer.Kvs
	for begin := 0; begin < len(kvs); {
		end := begin + 1
		for end < len(kvs) && compare(kvs[begin], kvs[end]) == 0 {
			end++
		}
		if end == len(kvs) && answer.More {
			for i := begin; i < end; i++ {
				kvs[i] = &mvccpb.KeyValue{}
			}
		} else {
			slices.SortFunc(kvs[begin:end], func(a, b *mvccpb.KeyValue) int {
				return bytes.Compare(a.Key, b.Key)
			})
		}
		begin = end
	}
}

func sortComparison(r *pb.RangeRequest) func(a, b *mvccpb.KeyValue) int {
	number := func(of func(*mvccpb.KeyValue) int64) func(a, b *mvccpb.KeyValue) int {
		return func(a, b *mvccpb.KeyValue) int { return int(of(a) - of(b)) }
	}
	switch r.SortTarget {
	case pb.RangeRequest_VERSION:
		return number((*mvccpb.KeyValue).GetVersion)
	case pb.RangeRequest_CREATE:
		return number((*mvccpb.KeyValue).GetCreateRevision)
	case pb.RangeRequest_MOD:
		return number((*mvccpb.KeyValue).GetModRevision)
	case pb.RangeRequest_VALUE:
		if r.KeysOnly {
			// Sorted by values that are not in the answer: the whole answer is one group.
			return func(a, b *mvccpb.KeyValue) int { return 0 }
		}
		return func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Value, b.Value) }
	}
	return nil
}

// same compares two normalised answers.
func same(a, b answer) bool {
	if a.code != b.code || a.text != b.text {
		return false
	}
	if a.message == nil || b.message == nil {
		return a.message == nil && b.message == nil
	}
	return proto.Equal(a.message, b.message)
}

// knownDifference is an accepted difference, with the reason.
type knownDifference struct {
	name    string
	reason  string
	accepts func(r request, subject, reference answer) bool
}

// knownDifferences lists the accepted differences. Requests that cannot be compared at all are not
// generated: RangeStream with a sort target but no sort order ("stream-sort-without-order") makes
// etcd sort each chunk separately and continue after that chunk's last key, so that its answer repeats
// and drops keys depending on its chunk sizes.
var knownDifferences = []knownDifference{}

func accepted(r request, subject, reference answer) string {
	for _, known := range knownDifferences {
		if known.accepts(r, subject, reference) {
			return known.name
		}
	}
	return ""
}
