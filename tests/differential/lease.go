package differential

import (
	"bytes"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// leaseIDs are few, so that grants collide, keys move between leases and revoked leases have keys.
var leaseIDs = []int64{1, 2, 3, 4, 5, 6, -7, 1<<63 - 1, -1 << 63}

// leaseTTL is longer than every run, because the two servers would not expire leases at the same time.
const leaseTTL = 1_000_000

func (g *generator) lease() int64 { return leaseIDs[g.Intn(len(leaseIDs))] }

// leaseWrite grants or revokes. No grant has the ID 0, for which each server chooses another ID.
func (g *generator) leaseWrite() proto.Message {
	if g.chance(40) {
		return &pb.LeaseRevokeRequest{ID: []int64{g.lease(), g.lease(), g.lease(), 0}[g.Intn(4)]}
	}
	ttl := leaseTTL + g.Int63n(1000)
	if g.chance(5) {
		ttl = []int64{9_000_000_000, 9_000_000_001, 1<<63 - 1}[g.Intn(3)]
	}
	return &pb.LeaseGrantRequest{ID: g.lease(), TTL: ttl}
}

func (g *generator) leaseRead() proto.Message {
	switch g.Intn(10) {
	case 0:
		return &pb.LeaseLeasesRequest{}
	case 1, 2:
		return &pb.LeaseKeepAliveRequest{ID: []int64{g.lease(), g.lease(), 0}[g.Intn(3)]}
	}
	return &pb.LeaseTimeToLiveRequest{ID: g.lease(), Keys: g.chance(80)}
}

// keepAlive sends one renewal on a separate stream, which the server must end without an error.
func (s *side) keepAlive(ctx context.Context, r *pb.LeaseKeepAliveRequest) (proto.Message, error) {
	stream, err := s.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(r); err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	stream.CloseSend()
	if more, err := stream.Recv(); err == nil {
		return nil, status.Errorf(codes.DataLoss, "a second answer: %v", more)
	} else if err.Error() != "EOF" {
		return nil, err
	}
	return answer, nil
}

// normaliseLease removes what depends on the time: the remaining TTL and the order of renewals. It
// also sorts keys, which etcd returns in random order.
func normaliseLease(message proto.Message) {
	switch answer := message.(type) {
	case *pb.LeaseTimeToLiveResponse:
		if left := answer.GrantedTTL - answer.TTL; answer.TTL >= 0 && left >= 0 && left < 10_000 {
			answer.TTL = answer.GrantedTTL
		}
		slices.SortFunc(answer.Keys, bytes.Compare)
	case *pb.LeaseLeasesResponse:
		slices.SortFunc(answer.Leases, func(a, b *pb.LeaseStatus) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
	}
}
