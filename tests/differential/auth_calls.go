package differential

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// The token of a request: none, the one in a slot (from 1 on), or an invalid one.
const (
	noToken      = 0
	unknownToken = -1 // was never issued
	emptyToken   = -2
	slotCount    = 9
)

// The form in which a token is sent.
const (
	asToken = iota
	asAuthorization
	asBearer
)

// withToken adds the token of the request. Each server has issued its own tokens.
func (s *side) withToken(ctx context.Context, r request) context.Context {
	token := ""
	switch {
	case r.as == unknownToken:
		token = "abcdefghijklmnop.1"
	case r.as == emptyToken:
	case r.as == noToken || s.tokens[r.as] == "":
		return ctx
	default:
		token = s.tokens[r.as]
	}
	switch r.shown {
	case asAuthorization:
		return metadata.AppendToOutgoingContext(ctx, "authorization", token)
	case asBearer:
		if token == "" {
			break // a space at the end of a header's value is refused by RFC 9113, and by Vigil
		}
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return metadata.AppendToOutgoingContext(ctx, "token", token)
}

// callAuth is call for the Auth service; it returns false for requests of other services.
func (s *side) callAuth(ctx context.Context, r request) (message proto.Message, err error, is bool) {
	switch body := r.body.(type) {
	case *pb.AuthEnableRequest:
		message, err = s.auth.AuthEnable(ctx, body)
	case *pb.AuthDisableRequest:
		message, err = s.auth.AuthDisable(ctx, body)
	case *pb.AuthStatusRequest:
		message, err = s.auth.AuthStatus(ctx, body)
	case *pb.AuthenticateRequest:
		message, err = s.authenticate(ctx, body, r.into)
	case *pb.AuthUserAddRequest:
		message, err = s.auth.UserAdd(ctx, body)
	case *pb.AuthUserGetRequest:
		message, err = s.auth.UserGet(ctx, body)
	case *pb.AuthUserListRequest:
		message, err = s.auth.UserList(ctx, body)
	case *pb.AuthUserDeleteRequest:
		message, err = s.auth.UserDelete(ctx, body)
	case *pb.AuthUserChangePasswordRequest:
		message, err = s.auth.UserChangePassword(ctx, body)
	case *pb.AuthUserGrantRoleRequest:
		message, err = s.auth.UserGrantRole(ctx, body)
	case *pb.AuthUserRevokeRoleRequest:
		message, err = s.auth.UserRevokeRole(ctx, body)
	case *pb.AuthRoleAddRequest:
		message, err = s.auth.RoleAdd(ctx, body)
	case *pb.AuthRoleGetRequest:
		message, err = s.auth.RoleGet(ctx, body)
	case *pb.AuthRoleListRequest:
		message, err = s.auth.RoleList(ctx, body)
	case *pb.AuthRoleDeleteRequest:
		message, err = s.auth.RoleDelete(ctx, body)
	case *pb.AuthRoleGrantPermissionRequest:
		message, err = s.auth.RoleGrantPermission(ctx, body)
	case *pb.AuthRoleRevokePermissionRequest:
		message, err = s.auth.RoleRevokePermission(ctx, body)
	default:
		return nil, nil, false
	}
	return message, err, true
}

func (s *side) authenticate(ctx context.Context, r *pb.AuthenticateRequest, slot int) (proto.Message, error) {
	answer, err := s.auth.Authenticate(ctx, r)
	if err == nil && slot > 0 {
		s.tokens[slot] = answer.Token
	}
	return answer, err
}

// callUpkeep is call for the services Maintenance and Cluster, and for watches.
func (s *side) callUpkeep(ctx context.Context, r request) (message proto.Message, err error, is bool) {
	switch body := r.body.(type) {
	case *pb.HashKVRequest:
		message, err = s.maintenance.HashKV(ctx, body)
	case *pb.HashRequest:
		message, err = s.maintenance.Hash(ctx, body)
	case *pb.StatusRequest:
		message, err = s.maintenance.Status(ctx, body)
	case *pb.AlarmRequest:
		message, err = s.maintenance.Alarm(ctx, body)
	case *pb.DefragmentRequest:
		message, err = s.maintenance.Defragment(ctx, body)
	case *pb.DowngradeRequest:
		message, err = s.maintenance.Downgrade(ctx, body)
	case *pb.MoveLeaderRequest:
		message, err = s.maintenance.MoveLeader(ctx, body)
	case *pb.SnapshotRequest:
		message, err = s.snapshot(ctx, body)
	case *pb.MemberListRequest:
		message, err = s.cluster.MemberList(ctx, body)
	case *pb.WatchCreateRequest:
		message, err = s.watchCreate(ctx, body)
	default:
		return nil, nil, false
	}
	return message, err, true
}

// snapshot requests a snapshot and reads only its beginning.
func (s *side) snapshot(ctx context.Context, r *pb.SnapshotRequest) (proto.Message, error) {
	stream, err := s.maintenance.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, err := stream.Recv(); err != nil {
		return nil, err
	}
	return &pb.SnapshotResponse{}, nil
}

// watchCreate returns the first answer to a watch on a separate call. For a refused watch the answer
// has both created and canceled.
func (s *side) watchCreate(ctx context.Context, r *pb.WatchCreateRequest) (proto.Message, error) {
	stream, err := s.watch.Watch(ctx)
	if err != nil {
		return nil, err
	}
	wrapped := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
	if err := stream.Send(wrapped); err != nil {
		return nil, err
	}
	return stream.Recv()
}

// normaliseUpkeep removes what belongs to one server: its IDs, its files, its tokens.
func normaliseUpkeep(message proto.Message) {
	switch answer := message.(type) {
	case *pb.AuthenticateResponse:
		if answer.Token != "" {
			answer.Token = "a token"
		}
	case *pb.HashResponse:
		answer.Hash = 0 // of a file that only etcd has
	case *pb.StatusResponse:
		answer.Leader, answer.RaftTerm, answer.RaftIndex, answer.RaftAppliedIndex = 0, 0, 0, 0
		answer.DbSize, answer.DbSizeInUse = 0, 0
		answer.Version = "" // the patch release
		slices.Sort(answer.Errors)
	case *pb.AuthRoleGetResponse: // permissions of one key: etcd's order is not stable
		for begin, end := 0, 0; begin < len(answer.Perm); begin = end {
			for end = begin; end < len(answer.Perm) && bytes.Equal(answer.Perm[end].Key, answer.Perm[begin].Key); end++ {
			}
			slices.SortFunc(answer.Perm[begin:end], func(a, b *authpb.Permission) int {
				return bytes.Compare(a.RangeEnd, b.RangeEnd)
			})
		}
	case *pb.AlarmResponse: // etcd returns alarms in random order
		slices.SortFunc(answer.Alarms, func(a, b *pb.AlarmMember) int {
			return cmp.Or(cmp.Compare(a.Alarm, b.Alarm), cmp.Compare(a.MemberID, b.MemberID))
		})
	case *pb.MemberListResponse:
		for _, member := range answer.Members {
			member.ID, member.PeerURLs, member.ClientURLs = 0, nil, nil
		}
	}
}
