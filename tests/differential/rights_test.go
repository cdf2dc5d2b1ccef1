package differential

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"vigil/tests/harness"
)

const (
	rightsRounds   = 150
	rightsRequests = 150 // in each round, sent concurrently
	rightsLeases   = 3
)

// rightsWalk compares the decisions of a running server with a model.
type rightsWalk struct {
	*rand.Rand
	t     *testing.T
	side  *side
	model *rights
	slots map[string]int
	used  map[string]bool // keys that the transaction already puts
}

// Between two changes of users and roles many requests are sent at once. None of them changes the
// store: the writes of a transaction are in the branch that is not taken, whose permissions are checked
// nevertheless. The test was verified by removing a check from auth/check.c.
func TestEveryAllowAndDenyAgreesWithTheModel(t *testing.T) {
	seed := number(t, "VIGIL_DIFF_SEED", 1)
	server := harness.Start(t, harness.Options{Dir: memoryDir(t), Fast: true, Args: tokenFlags(t, false)})
	s, err := dial("subject", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.connection.Close()
	w := &rightsWalk{Rand: rand.New(rand.NewSource(seed)), t: t, side: s, model: newRights(),
		slots: map[string]int{"": noToken}}
	w.begin()
	allowed, refused := 0, 0
	for round := range rightsRounds {
		for range 1 + w.Intn(3) {
			w.change()
		}
		yes, no := w.check(fmt.Sprintf("seed %d, round %d", seed, round))
		allowed, refused = allowed+yes, refused+no
	}
	t.Logf("seed %d: %d allowed, %d denied", seed, allowed, refused)
	if allowed < rightsRounds*rightsRequests/20 || refused < rightsRounds*rightsRequests/20 {
		t.Errorf("seed %d: too few requests were allowed or denied", seed)
	}
}

// must sends a request that must succeed.
func (w *rightsWalk) must(r request) {
	w.t.Helper()
	if a := w.side.call(r); a.code != codes.OK {
		w.t.Fatalf("%v: %v", r, a)
	}
}

func (w *rightsWalk) begin() {
	users := []string{"root", "ann", "ben", "cy"}
	for _, user := range users {
		w.must(request{body: &pb.AuthUserAddRequest{Name: user, Password: user}})
		w.model.users[user] = map[string]bool{}
	}
	for _, role := range []string{"root", "r1", "r2", "r3"} {
		w.must(request{body: &pb.AuthRoleAddRequest{Name: role}})
		w.model.roles[role] = map[grant]access{}
	}
	w.must(request{body: &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}})
	w.model.users["root"]["root"] = true
	for lease := int64(1); lease <= rightsLeases; lease++ {
		w.must(request{body: &pb.LeaseGrantRequest{ID: lease, TTL: leaseTTL}})
		w.model.lease[lease] = nil // the first has no keys
	}
	w.attach(w.pick("a", "ab"), 2)
	w.attach(w.pick("b", "ba"), 3)
	w.attach(w.pick("c", "ac"), 3)
	w.must(request{body: &pb.AuthEnableRequest{}})
	for i, user := range users {
		w.slots[user] = i + 1
		w.login(user)
	}
}

func (w *rightsWalk) attach(key string, lease int64) {
	w.must(request{body: &pb.PutRequest{Key: []byte(key), Lease: lease}})
	w.model.lease[lease] = append(w.model.lease[lease], key)
}

func (w *rightsWalk) login(user string) {
	w.must(request{body: &pb.AuthenticateRequest{Name: user, Password: user}, into: w.slots[user]})
}

func (w *rightsWalk) key() string {
	key := string("abc"[w.Intn(3)])
	if w.Intn(2) == 0 {
		key += string("abc"[w.Intn(3)])
	}
	return key
}

// end returns the range end for one key, for all following keys, or for a range that is not empty.
func (w *rightsWalk) end(key string) string {
	switch w.Intn(5) {
	case 0, 1:
		return ""
	case 2:
		return "\x00"
	}
	for range 10 {
		if end := w.key(); end > key {
			return end
		}
	}
	return ""
}

func (w *rightsWalk) pick(names ...string) string { return names[w.Intn(len(names))] }

// change makes a random change to users and roles.
func (w *rightsWalk) change() {
	role, user := w.pick("r1", "r2", "r3"), w.pick("ann", "ben", "cy")
	as := w.slots["root"]
	m := w.model
	switch kind := w.Intn(12); {
	case kind < 5:
		key := w.key()
		g := grant{key, w.end(key)}
		// An existing one is replaced; in etcd only if it is the first of its key.
		if _, again := m.roles[role][g]; again && harness.IsEtcd(harness.Subject()) {
			return
		}
		given := authpb.Permission_Type(w.Intn(3))
		w.must(request{as: as, body: &pb.AuthRoleGrantPermissionRequest{Name: role,
			Perm: &authpb.Permission{PermType: given, Key: []byte(g.key), RangeEnd: []byte(g.end)}}})
		m.roles[role][g] = map[authpb.Permission_Type]access{authpb.Permission_READ: reads,
			authpb.Permission_WRITE: writes, authpb.Permission_READWRITE: reads | writes}[given]
	case kind < 7:
		if len(m.roles[role]) == 0 {
			return
		}
		given := slices.SortedFunc(maps.Keys(m.roles[role]), func(a, b grant) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.end, b.end))
		})
		g := given[w.Intn(len(given))]
		w.must(request{as: as, body: &pb.AuthRoleRevokePermissionRequest{
			Role: role, Key: []byte(g.key), RangeEnd: []byte(g.end)}})
		delete(m.roles[role], g)
	case kind < 9:
		w.must(request{as: as, body: &pb.AuthUserGrantRoleRequest{User: user, Role: role}})
		m.users[user][role] = true
	case kind < 10 && m.users[user][role]:
		w.must(request{as: as, body: &pb.AuthUserRevokeRoleRequest{Name: user, Role: role}})
		delete(m.users[user], role)
	case kind == 10:
		w.must(request{as: as, body: &pb.AuthRoleDeleteRequest{Role: role}})
		w.must(request{as: as, body: &pb.AuthRoleAddRequest{Name: role}})
		m.roles[role] = map[grant]access{}
		for _, roles := range m.users {
			delete(roles, role)
		}
	case kind == 11:
		w.must(request{as: as, body: &pb.AuthUserDeleteRequest{Name: user}})
		w.must(request{as: as, body: &pb.AuthUserAddRequest{Name: user, Password: user}})
		m.users[user] = map[string]bool{}
		w.login(user)
	}
}

// check sends the requests of one round and compares each decision.
func (w *rightsWalk) check(where string) (allowed, refused int) {
	var list []request
	var users []string
	for range rightsRequests {
		user := w.pick("ann", "ben", "cy", "ann", "ben", "cy", "root", "")
		users = append(users, user)
		list = append(list, request{as: w.slots[user], body: w.randomRequest()})
	}
	for i, a := range callAll(w.side, list, readers) {
		yes, is := decision(a)
		want := w.model.mayRequest(users[i], list[i].body)
		if t, ok := list[i].body.(*pb.TxnRequest); ok && harness.IsEtcd(harness.Subject()) && touchesNothing(t) {
			want = true // a listed difference
		}
		if !is || yes != want {
			w.t.Fatalf("%s: %q sends %v\n  model: allowed %v\n  server: %v\n  roles: %v of %v\n  leases: %v", where,
				users[i], list[i], want, a, w.model.users, w.model.roles, w.model.lease)
		}
		if yes {
			allowed++
		} else {
			refused++
		}
	}
	return allowed, refused
}

func (w *rightsWalk) randomRequest() proto.Message {
	key := w.key()
	switch w.Intn(14) {
	case 0, 1, 2:
		return &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(w.end(key)), Serializable: w.Intn(2) == 0}
	case 3:
		return &pb.WatchCreateRequest{Key: []byte(key), RangeEnd: []byte(w.end(key))}
	case 4:
		return &pb.LeaseTimeToLiveRequest{ID: 1 + w.Int63n(rightsLeases), Keys: w.Intn(4) > 0}
	case 5:
		return &pb.LeaseKeepAliveRequest{ID: 1 + w.Int63n(rightsLeases)}
	case 6:
		return []proto.Message{&pb.LeaseLeasesRequest{}, &pb.HashKVRequest{}, &pb.AuthUserListRequest{},
			&pb.SnapshotRequest{}}[w.Intn(4)]
	}
	w.used = map[string]bool{}
	t := w.txn(2, w.Intn(2) == 0)
	// Without a comparison the first branch is taken.
	return &pb.TxnRequest{Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: t}}}}
}

// txn either puts or deletes: doing both to a key is refused for another reason.
func (w *rightsWalk) txn(depth int, puts bool) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for range w.Intn(2) {
		key := w.key()
		t.Compare = append(t.Compare, &pb.Compare{Key: []byte(key), RangeEnd: []byte(w.end(key))})
	}
	for _, branch := range []*[]*pb.RequestOp{&t.Success, &t.Failure} {
		for range w.Intn(3) {
			if op := w.op(depth, puts); op != nil {
				*branch = append(*branch, op)
			}
		}
	}
	return t
}

func (w *rightsWalk) op(depth int, puts bool) *pb.RequestOp {
	key := w.key()
	switch kind := w.Intn(6); {
	case kind < 2:
		return opRange(&pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(w.end(key))})
	case kind == 2 && depth > 0:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: w.txn(depth-1, puts)}}
	case puts && w.used[key]:
		return nil
	case puts:
		w.used[key] = true
		put := &pb.PutRequest{Key: []byte(key), PrevKv: w.Intn(3) == 0, Lease: max(0, w.Int63n(8)-4)}
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	}
	d := &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(w.end(key)), PrevKv: w.Intn(3) == 0}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: d}}
}
