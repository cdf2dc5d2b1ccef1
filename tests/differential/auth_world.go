package differential

import (
	"bytes"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// world is the state of users, roles and tokens according to the answers of the reference. It affects
// the next requests, and says where a listed difference is expected.
type world struct {
	enabled bool
	version bool // the reference knows its version, which it does some seconds after its start
	users   map[string]*account
	roles   map[string][]*authpb.Permission // in the order in which etcd keeps them
	slots   [slotCount + 1]string           // user of the token; "" without a valid token
	given   [slotCount + 1]bool             // whether the slot has a token, valid or not
	jwt     bool                            // tokens are signed rather than kept: none ends early
	alarms  map[alarm]bool
	// Roles that have had more than 12 permissions: etcd sorts these with an unstable algorithm.
	shuffled map[string]bool
}

type alarm struct {
	kind   pb.AlarmType
	member uint64
}

type account struct {
	password   string
	noPassword bool
	roles      map[string]bool
}

func newWorld(jwt bool) *world {
	return &world{users: map[string]*account{}, roles: map[string][]*authpb.Permission{},
		jwt: jwt, alarms: map[alarm]bool{}, shuffled: map[string]bool{}}
}

func (w *world) isRoot(user string) bool {
	return w.users[user] != nil && w.users[user].roles["root"]
}

// learn applies the changes that the reference has made.
func (w *world) learn(r request, a answer) {
	if a.code != codes.OK {
		if r.as > 0 && strings.Contains(a.text, "invalid auth token") {
			w.slots[r.as] = ""
		}
		return
	}
	switch body := r.body.(type) {
	case *pb.StatusRequest:
		w.version = a.message.(*pb.StatusResponse).StorageVersion == storageVersion
	case *pb.AuthEnableRequest:
		w.enabled = true
	case *pb.AuthDisableRequest:
		w.enabled = false
		if !w.jwt {
			w.slots = [slotCount + 1]string{}
		}
	case *pb.AuthenticateRequest:
		w.slots[r.into], w.given[r.into] = body.Name, true
	case *pb.AuthUserAddRequest:
		w.users[body.Name] = &account{body.Password, body.GetOptions().GetNoPassword(), map[string]bool{}}
	case *pb.AuthUserChangePasswordRequest:
		w.users[body.Name].password = body.Password
		w.endTokens(body.Name)
	case *pb.AuthUserDeleteRequest:
		delete(w.users, body.Name)
		w.endTokens(body.Name)
	case *pb.AuthUserGrantRoleRequest:
		w.users[body.User].roles[body.Role] = true
	case *pb.AuthUserRevokeRoleRequest:
		delete(w.users[body.Name].roles, body.Role)
	case *pb.AlarmRequest:
		switch body.Action {
		case pb.AlarmRequest_ACTIVATE:
			w.alarms[alarm{body.Alarm, body.MemberID}] = true
		case pb.AlarmRequest_DEACTIVATE:
			delete(w.alarms, alarm{body.Alarm, body.MemberID})
		}
	default:
		w.learnRole(r)
	}
}

// endTokens ends the tokens that a server keeps for a user, when the user or the password changes.
func (w *world) endTokens(user string) {
	for slot, owner := range w.slots {
		if owner == user && !w.jwt {
			w.slots[slot] = ""
		}
	}
}

func (w *world) learnRole(r request) {
	switch body := r.body.(type) {
	case *pb.AuthRoleAddRequest:
		w.roles[body.Name] = nil
	case *pb.AuthRoleDeleteRequest:
		delete(w.roles, body.Role)
		delete(w.shuffled, body.Role)
		for _, user := range w.users {
			delete(user.roles, body.Role)
		}
	case *pb.AuthRoleGrantPermissionRequest:
		list := w.roles[body.Name]
		i, found := slices.BinarySearchFunc(list, body.Perm.Key, func(p *authpb.Permission, key []byte) int {
			return bytes.Compare(p.Key, key)
		})
		if found && bytes.Equal(list[i].RangeEnd, body.Perm.RangeEnd) {
			list[i] = body.Perm
			return
		}
		list = append(slices.Clone(list), body.Perm)
		slices.SortStableFunc(list, func(a, b *authpb.Permission) int { return bytes.Compare(a.Key, b.Key) })
		w.roles[body.Name] = list
		w.shuffled[body.Name] = w.shuffled[body.Name] || len(list) > 12
	case *pb.AuthRoleRevokePermissionRequest:
		w.roles[body.Role] = slices.DeleteFunc(slices.Clone(w.roles[body.Role]), func(p *authpb.Permission) bool {
			return bytes.Equal(p.Key, body.Key) && bytes.Equal(p.RangeEnd, body.RangeEnd)
		})
	}
}

// leftOut names the listed difference after which the two servers would differ forever, so that later
// answers could not be compared. TestListedDifferencesOfAuth sends exactly these requests.
func (w *world) leftOut(r request) string {
	switch body := r.body.(type) {
	case *pb.DowngradeRequest:
		if !w.version {
			return "downgrade before the reference has a version"
		}
	case *pb.AuthRoleGrantPermissionRequest:
		if w.grantsAgain(body) {
			return "range granted again"
		}
	case *pb.LeaseGrantRequest, *pb.LeaseRevokeRequest:
		if w.isDeletedUser(r) {
			return "lease of a deleted user"
		}
	}
	return ""
}

// grantsAgain: etcd examines only the first permission of the key. From the thirteenth permission on
// it is unspecified which one is the first, because etcd sorts them with an unstable algorithm.
func (w *world) grantsAgain(r *pb.AuthRoleGrantPermissionRequest) bool {
	if r.Perm == nil {
		return false
	}
	first, again := true, false
	for _, p := range w.roles[r.Name] {
		if bytes.Equal(p.Key, r.Perm.Key) {
			same := bytes.Equal(p.RangeEnd, r.Perm.RangeEnd)
			again = again || (same && (!first || w.shuffled[r.Name]))
			first = false
		}
	}
	return again
}

func (w *world) sender(r request) string {
	if r.as <= 0 {
		return ""
	}
	return w.slots[r.as]
}

// isDeletedUser says whether a request has a valid token of a user that was deleted.
func (w *world) isDeletedUser(r request) bool {
	return w.enabled && r.as > 0 && w.slots[r.as] != "" && w.users[w.slots[r.as]] == nil
}

const (
	userEmpty      = "etcdserver: user name is empty"
	tokenInvalid   = "etcdserver: invalid auth token"
	denied         = "etcdserver: permission denied"
	authFailed     = "etcdserver: authentication failed, invalid user ID or password"
	noPassword     = "auth: authentication failed, password was given for no password user"
	oldRevision    = "etcdserver: revision of auth store is old"
	userNotFound   = "etcdserver: user name not found"
	tooLong        = "bcrypt: password length exceeds 72 bytes"
	storageVersion = "3.7.0"
	noSpace        = "etcdserver: mvcc: database space exceeded"
	corrupt        = "etcdserver: corrupt cluster"
)

// listed names the difference of docs/compatibility-etcd.md that these answers show, or returns "".
func (w *world) listed(r request, subject, reference answer) string {
	refused := subject.text == w.refusal(r)
	switch body := r.body.(type) {
	case *pb.StatusRequest:
		if !w.version && onlyVersionDiffers(subject, reference) {
			return "reference without a version"
		}
	case *pb.AuthUserGetRequest:
		if body.Name == "" && subject.text == userEmpty && refused && reference.text == userNotFound {
			return "get of the user without a name, without a token"
		}
	case *pb.AuthenticateRequest:
		if user := w.users[body.Name]; user != nil && user.noPassword && subject.text == authFailed &&
			reference.text == noPassword {
			return "login without a password"
		}
	case *pb.TxnRequest:
		if reference.code == codes.OK && (refused || subject.text == oldRevision) && touchesNothing(body) {
			return "transaction that touches nothing"
		}
	}
	if (reference.text == noSpace && w.isRaised(pb.AlarmType_NOSPACE)) ||
		(reference.text == corrupt && w.isRaised(pb.AlarmType_CORRUPT)) {
		if refused || subject.text == denied || subject.text == oldRevision {
			return "rights before alarms"
		}
	}
	if emptyRange(r) && !isDenied(subject) && isDenied(reference) {
		return "range from a key to one before it"
	}
	if w.isDeletedUser(r) && subject.text == denied && ((reference.code == codes.OK && anyUserMay(r)) ||
		reference.text == oldRevision || reference.text == userNotFound) {
		return "token of a deleted user"
	}
	if (subject.text == denied || (subject.text == userNotFound && w.isDeletedUser(r))) &&
		!w.isRoot(w.sender(r)) && reference.text == tooLong {
		return "order of errors" // only root may set passwords
	}
	if refused && (aboutForm[reference.text] ||
		strings.HasPrefix(reference.text, "RangeStream does not support ")) {
		return "order of errors"
	}
	return ""
}

func onlyVersionDiffers(subject, reference answer) bool {
	if subject.message == nil || reference.message == nil {
		return false
	}
	theirs := proto.Clone(reference.message).(*pb.StatusResponse)
	theirs.StorageVersion = storageVersion
	return same(subject, answer{message: theirs})
}

func (w *world) isRaised(kind pb.AlarmType) bool {
	for on := range w.alarms {
		if on.kind == kind {
			return true
		}
	}
	return false
}

// refusal is the error for a request whose sender may not call at all.
func (w *world) refusal(r request) string {
	switch {
	case !w.enabled:
		return "(no request is refused)"
	case w.isDeletedUser(r):
		return denied
	case r.as == noToken || (r.as > 0 && !w.given[r.as]):
		return userEmpty
	case r.as < 0 || w.slots[r.as] == "":
		return tokenInvalid
	}
	return "(may call)"
}

// emptyRange says whether the range ends before it begins. Whether etcd allows it depends on the shape
// of its tree of permissions. It has no keys, and is not sent in transactions, which may have others.
func emptyRange(r request) bool {
	var key, end []byte
	switch body := r.body.(type) {
	case *pb.RangeRequest:
		key, end = body.Key, body.RangeEnd
	case *pb.DeleteRangeRequest:
		key, end = body.Key, body.RangeEnd
	case *pb.WatchCreateRequest:
		key, end = body.Key, body.RangeEnd
	}
	return isBackward(key, end)
}

func isBackward(key, end []byte) bool {
	return len(end) > 0 && string(end) != "\x00" && bytes.Compare(key, end) > 0
}

func isDenied(a answer) bool {
	if w, ok := a.message.(*pb.WatchResponse); ok {
		return w.Canceled && strings.Contains(w.CancelReason, denied)
	}
	return a.text == denied
}

func touchesNothing(t *pb.TxnRequest) bool {
	nothing := len(t.Compare) == 0
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			nothing = nothing && op.GetRequestTxn() != nil && touchesNothing(op.GetRequestTxn())
		}
	}
	return nothing
}

// anyUserMay: for these etcd requires credentials but does not check that the user exists.
func anyUserMay(r request) bool {
	switch body := r.body.(type) {
	case *pb.AlarmRequest:
		return body.Action == pb.AlarmRequest_GET
	case *pb.StatusRequest, *pb.MemberListRequest, *pb.LeaseTimeToLiveRequest, *pb.LeaseKeepAliveRequest,
		*pb.LeaseLeasesRequest:
		return true
	}
	return false
}

// aboutForm has etcd's errors for requests that are invalid for any sender.
var aboutForm = map[string]bool{
	"etcdserver: key is not provided":                true,
	"etcdserver: value is provided":                  true,
	"etcdserver: lease is provided":                  true,
	"etcdserver: too many operations in txn request": true,
	"etcdserver: duplicate key given in txn request": true,
	"etcdserver: invalid sort option":                true,
	"etcdserver: key not found":                      true,
	"etcdserver: permission not given":               true,
	"etcdserver: role name is empty":                 true,
	tooLong:                                          true,
}
