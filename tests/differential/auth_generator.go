package differential

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// authGenerator makes requests about users, roles and keys by all kinds of users.
type authGenerator struct {
	generator
	world *world
}

var (
	userNames = []string{"root", "ann", "ben", "cy", "dot", "r1"}
	roleNames = []string{"root", "r1", "r2", "r3", "ann"}
)

func authProfile() profile {
	keys := []string{"\x00", "a", "a\x00", "aa", "ab", "b", "ba", "bb", "c", "\xff"}
	return profile{name: "auth", keys: keys, valueMax: 3, txnDepth: 2}
}

func (g *authGenerator) user() string {
	if g.chance(3) {
		return []string{"", "nobody", "Ann", "ann\x00"}[g.Intn(4)]
	}
	return userNames[g.Intn(len(userNames))]
}

func (g *authGenerator) role() string {
	if g.chance(3) {
		return []string{"", "none", "R1"}[g.Intn(3)]
	}
	return roleNames[g.Intn(len(roleNames))]
}

// slotOf finds a token of a user with the property, or noToken.
func (g *authGenerator) slotOf(is func(user string) bool) int {
	var found []int
	for slot, user := range g.world.slots {
		if user != "" && is(user) {
			found = append(found, slot)
		}
	}
	if len(found) == 0 {
		return noToken
	}
	return found[g.Intn(len(found))]
}

// anyone picks the token of a request about keys; administrator that of one about users.
func (g *authGenerator) anyone() int {
	switch kind := g.Intn(100); {
	case kind < 70:
		return g.slotOf(func(user string) bool { return !g.world.isRoot(user) })
	case kind < 80:
		return g.slotOf(g.world.isRoot)
	case kind < 93:
		return 1 + g.Intn(slotCount) // also a token that has expired
	case kind < 97:
		return noToken
	}
	return []int{unknownToken, emptyToken}[g.Intn(2)]
}

func (g *authGenerator) administrator() int {
	if g.chance(80) {
		return g.slotOf(g.world.isRoot)
	}
	return g.anyone()
}

// next makes one request.
func (g *authGenerator) next() request {
	r := request{shown: []int{asToken, asToken, asAuthorization, asBearer}[g.Intn(4)]}
	changes := 30
	if g.world.jwt {
		changes = 8 // each invalidates all tokens
	}
	switch kind := g.Intn(100); {
	case len(g.world.alarms) > 0 && g.chance(4):
		raised := slices.SortedFunc(maps.Keys(g.world.alarms), func(a, b alarm) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.member, b.member))
		})
		r.as, r.body = g.slotOf(g.world.isRoot), &pb.AlarmRequest{
			Action: pb.AlarmRequest_DEACTIVATE, Alarm: raised[0].kind, MemberID: raised[0].member}
	case g.missesRoot() && g.chance(50):
		return g.towardsRoot()
	case kind < changes:
		r.as, r.body = g.administrator(), g.change()
	case kind < changes+8:
		r.as, r.body = g.administrator(), g.look()
	case kind < changes+18:
		return g.login(g.user())
	case kind < changes+24:
		r.as, r.body = g.anyone(), g.upkeep()
		if g.chance(40) {
			r.as = g.administrator()
		}
	default:
		r.as, r.body, r.stream = g.anyone(), nil, false
		r.body, r.stream = g.keys()
	}
	return r
}

// missesRoot says whether authentication is disabled or no root user has a token.
func (g *authGenerator) missesRoot() bool {
	return !g.world.enabled || g.slotOf(g.world.isRoot) == noToken
}

// towardsRoot makes the next request that leads to enabled authentication with a root user.
func (g *authGenerator) towardsRoot() request {
	w := g.world
	switch {
	case w.enabled && w.users["root"].noPassword:
		return request{body: &pb.AuthStatusRequest{}} // root cannot log in, but other users may have the role
	case w.enabled:
		return g.login("root")
	case w.users["root"] == nil:
		return request{body: &pb.AuthUserAddRequest{Name: "root", Password: g.password("root")}}
	case w.users["root"].noPassword:
		return request{body: &pb.AuthUserDeleteRequest{Name: "root"}}
	case !w.users["root"].roles["root"]:
		return request{body: &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}}
	}
	return request{body: &pb.AuthEnableRequest{}}
}

func (g *authGenerator) password(user string) string {
	if g.chance(2) {
		return []string{"", strings.Repeat("x", 72), strings.Repeat("x", 73)}[g.Intn(3)]
	}
	return fmt.Sprintf("%q-%d", user, g.Intn(3))
}

func (g *authGenerator) login(user string) request {
	password := g.password(user)
	if known := g.world.users[user]; known != nil && g.chance(85) {
		password = known.password
	}
	r := request{body: &pb.AuthenticateRequest{Name: user, Password: password}, into: 1 + g.Intn(slotCount)}
	if g.chance(20) {
		r.as = g.anyone() // with a valid or invalid token
	}
	return r
}

func (g *authGenerator) permission() *authpb.Permission {
	if g.chance(1) {
		return nil
	}
	key := g.key()
	return &authpb.Permission{
		PermType: authpb.Permission_Type(g.Intn(3)), Key: key, RangeEnd: g.rangeEnd(key),
	}
}

// change makes one of the requests that change users and roles.
func (g *authGenerator) change() proto.Message {
	switch kind := g.Intn(1000); {
	case kind < 120:
		user := g.user()
		add := &pb.AuthUserAddRequest{Name: user, Password: g.password(user)}
		if g.chance(10) {
			add.Options = &authpb.UserAddOptions{NoPassword: g.chance(70)}
		}
		return add
	case kind < 160:
		return &pb.AuthUserDeleteRequest{Name: g.user()}
	case kind < 200:
		user := g.user()
		return &pb.AuthUserChangePasswordRequest{Name: user, Password: g.password(user)}
	case kind < 340:
		return &pb.AuthUserGrantRoleRequest{User: g.user(), Role: g.role()}
	case kind < 420:
		return &pb.AuthUserRevokeRoleRequest{Name: g.user(), Role: g.role()}
	case kind < 540:
		return &pb.AuthRoleAddRequest{Name: g.role()}
	case kind < 570:
		return &pb.AuthRoleDeleteRequest{Role: g.role()}
	case kind < 870:
		return &pb.AuthRoleGrantPermissionRequest{Name: g.role(), Perm: g.permission()}
	case kind < 985:
		return g.revoke()
	case kind < 992:
		return &pb.AuthDisableRequest{}
	}
	return &pb.AuthEnableRequest{}
}

// revoke mostly revokes a granted permission.
func (g *authGenerator) revoke() proto.Message {
	role := g.role()
	if list := g.world.roles[role]; len(list) > 0 && g.chance(80) {
		p := list[g.Intn(len(list))]
		return &pb.AuthRoleRevokePermissionRequest{Role: role, Key: p.Key, RangeEnd: p.RangeEnd}
	}
	key := g.key()
	return &pb.AuthRoleRevokePermissionRequest{Role: role, Key: key, RangeEnd: g.rangeEnd(key)}
}

// look reads users and roles.
func (g *authGenerator) look() proto.Message {
	return []proto.Message{
		&pb.AuthStatusRequest{}, &pb.AuthUserListRequest{}, &pb.AuthRoleListRequest{},
		&pb.AuthUserGetRequest{Name: g.user()}, &pb.AuthRoleGetRequest{Role: g.role()},
		&pb.AuthRoleGetRequest{Role: g.role()},
	}[g.Intn(6)]
}

// upkeep makes a request of operators.
func (g *authGenerator) upkeep() proto.Message {
	switch kind := g.Intn(100); {
	case kind < 2:
		return &pb.DefragmentRequest{}
	case kind < 6:
		return &pb.SnapshotRequest{}
	case kind < 20:
		return &pb.StatusRequest{}
	case kind < 34:
		return &pb.MemberListRequest{Linearizable: g.chance(50)}
	case kind < 48:
		return &pb.HashKVRequest{Revision: g.anyRevision()}
	case kind < 56:
		return &pb.HashRequest{}
	case kind < 70:
		return g.alarm()
	case kind < 80:
		return &pb.MoveLeaderRequest{TargetID: uint64(g.Intn(3))}
	case kind < 92:
		return g.downgrade()
	}
	return g.compaction()
}

// alarm lists, raises and disarms alarms. An alarm that stops writes is soon disarmed.
func (g *authGenerator) alarm() proto.Message {
	alarm := &pb.AlarmRequest{Alarm: pb.AlarmType(g.Intn(3)), MemberID: uint64(g.Intn(3))}
	if g.chance(50) {
		alarm.Action = pb.AlarmRequest_AlarmAction(1 + g.Intn(2))
	}
	return alarm
}

// downgrade never enables a downgrade, because Vigil's files have no version of etcd.
func (g *authGenerator) downgrade() proto.Message {
	versions := []string{"", "3.6", "3.6.0", "3.7.0", "3.5.0", "3.8.0", "4.0.0", "three", "3"}
	d := &pb.DowngradeRequest{Action: pb.DowngradeRequest_VALIDATE, Version: versions[g.Intn(len(versions))]}
	if g.chance(20) {
		d.Action = []pb.DowngradeRequest_DowngradeAction{pb.DowngradeRequest_CANCEL, 7}[g.Intn(2)]
	}
	return d
}

// keys makes a request about keys, leases or watches.
func (g *authGenerator) keys() (body proto.Message, stream bool) {
	switch kind := g.Intn(100); {
	case kind < 20:
		stream = g.chance(20)
		return g.rangeRequest(stream), stream
	case kind < 40:
		return g.put(g.key()), false
	case kind < 52:
		return g.deleteRange(), false
	case kind < 76:
		t := g.txn(g.txnDepth)
		avoidPanics(t)
		turnRanges(t)
		return t, false
	case kind < 82:
		return g.leaseWrite(), false
	case kind < 92:
		return g.leaseRead(), false
	}
	key := g.key()
	w := &pb.WatchCreateRequest{Key: key, RangeEnd: g.rangeEnd(key), PrevKv: g.chance(30)}
	w.WatchId = int64(g.Intn(3))
	return w, false
}

// turnRanges reverses ranges that end before they begin: see emptyRange.
func turnRanges(t *pb.TxnRequest) {
	turn := func(key, end *[]byte) {
		if isBackward(*key, *end) {
			*key, *end = *end, *key
		}
	}
	for _, c := range t.Compare {
		turn(&c.Key, &c.RangeEnd)
	}
	eachOp(t, func(op *pb.RequestOp) {
		if r := op.GetRequestRange(); r != nil {
			turn(&r.Key, &r.RangeEnd)
		} else if d := op.GetRequestDeleteRange(); d != nil {
			turn(&d.Key, &d.RangeEnd)
		} else if n := op.GetRequestTxn(); n != nil {
			for _, c := range n.Compare {
				turn(&c.Key, &c.RangeEnd)
			}
		}
	})
}

// begin makes the first users and roles.
func (g *authGenerator) begin() []request {
	list := []request{}
	for _, name := range slices.Concat(userNames, []string{"ann"}) {
		list = append(list, request{body: &pb.AuthUserAddRequest{Name: name, Password: g.password(name)}})
	}
	for _, name := range roleNames {
		list = append(list, request{body: &pb.AuthRoleAddRequest{Name: name}})
	}
	for range 25 {
		list = append(list, request{body: g.change()})
	}
	return list
}
