package differential

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"vigil/tests/harness"
)

// enabled enables authentication, with root in slot 1 and ann in slot 2.
func enabled() []request {
	return []request{
		{body: &pb.AuthUserAddRequest{Name: "root", Password: "root"}},
		{body: &pb.AuthUserAddRequest{Name: "ann", Password: "ann"}},
		{body: &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}},
		{body: &pb.AuthRoleAddRequest{Name: "r"}},
		{body: &pb.AuthEnableRequest{}},
		{body: &pb.AuthenticateRequest{Name: "root", Password: "root"}, into: 1},
		{body: &pb.AuthenticateRequest{Name: "ann", Password: "ann"}, into: 2},
	}
}

// Differences that the walk leaves out, because the two servers would differ forever, are exactly the
// listed ones.
func TestListedDifferencesOfAuth(t *testing.T) {
	if harness.IsEtcd(harness.Subject()) {
		t.Skip("of Vigil")
	}
	subject, reference, stop := pair(t, memoryDir(t), tokenFlags(t, true)...)
	defer stop()
	send := func(r request) (ours, theirs answer) {
		a, b := callBoth(subject, reference, []request{r}, 1)
		return normalise(r, a[0]), normalise(r, b[0])
	}
	agree := func(list ...request) {
		t.Helper()
		for _, r := range list {
			if ours, theirs := send(r); ours.code != codes.OK || !same(ours, theirs) {
				t.Fatalf("%v", &difference{r, ours, theirs})
			}
		}
	}
	grant := func(end string, given authpb.Permission_Type) request {
		return request{as: 1, body: &pb.AuthRoleGrantPermissionRequest{Name: "r",
			Perm: &authpb.Permission{PermType: given, Key: []byte("a"), RangeEnd: []byte(end)}}}
	}
	look := request{as: 1, body: &pb.AuthRoleGetRequest{Role: "r"}}

	// A range is granted again after another one of the same key: etcd then has two.
	agree(enabled()...)
	agree(grant("b", authpb.Permission_READ), grant("c", authpb.Permission_READWRITE), look)
	agree(grant("b", authpb.Permission_WRITE), look) // the first of its key
	agree(grant("c", authpb.Permission_READ))
	ours, theirs := send(look)
	mine, others := ours.message.(*pb.AuthRoleGetResponse).Perm, theirs.message.(*pb.AuthRoleGetResponse).Perm
	if len(mine) != 2 || mine[1].PermType != authpb.Permission_READ || len(others) != 3 {
		t.Errorf("granted again: %v, reference %v", ours, theirs)
	}
	agree(request{as: 1, body: &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("a"), RangeEnd: []byte("c")}}, look)

	// Leases of a deleted user.
	agree(request{body: &pb.AuthenticateRequest{Name: "ann", Password: "ann"}, into: 2})
	agree(request{as: 1, body: &pb.AuthUserDeleteRequest{Name: "ann"}})
	for _, body := range []proto.Message{&pb.LeaseGrantRequest{ID: 7, TTL: leaseTTL}, &pb.LeaseRevokeRequest{ID: 7}} {
		ours, theirs := send(request{as: 2, body: body})
		if ours.text != denied || theirs.code != codes.OK {
			t.Errorf("lease of a deleted user: %v, reference %v", ours, theirs)
		}
	}

	// Passwords with a NUL.
	r := request{as: 1, body: &pb.AuthUserAddRequest{Name: "nul", Password: "a\x00b"}}
	if ours, theirs := send(r); ours.code != codes.InvalidArgument || theirs.code != codes.OK {
		t.Errorf("a password with NUL: %v, reference %v", ours, theirs)
	}
}

// The walk must find each planted fault.
func TestPlantedFaultsOfAuthAreFound(t *testing.T) {
	faults := map[string]func(request, answer) answer{
		"denied is allowed": func(r request, a answer) answer {
			if _, ok := r.body.(*pb.RangeRequest); ok && a.text == denied {
				return answer{message: &pb.RangeResponse{Header: &pb.ResponseHeader{}}}
			}
			return a
		},
		"an expired token is valid": func(r request, a answer) answer {
			if strings.Contains(a.text, "invalid auth token") {
				a.text = userEmpty
			}
			return a
		},
		"a role forgotten": func(_ request, a answer) answer {
			if u, ok := a.message.(*pb.AuthUserGetResponse); ok && len(u.Roles) > 0 {
				u.Roles = u.Roles[1:]
			}
			return a
		},
		"a change not counted": func(_ request, a answer) answer {
			if s, ok := a.message.(*pb.AuthStatusResponse); ok && s.Enabled {
				s.AuthRevision--
			}
			return a
		},
		"a watch of others": func(_ request, a answer) answer {
			if w, ok := a.message.(*pb.WatchResponse); ok && w.Canceled {
				w.Canceled, w.WatchId, w.CancelReason = false, 0, ""
			}
			return a
		},
	}
	answers := keptAnswers(t)
	for name, fault := range faults {
		w := newWalk(nil, nil, false)
		var found *difference
		for i := 0; i < len(answers) && found == nil; i++ {
			found = w.judge(answers[i].request, fault(answers[i].request, clone(answers[i].subject)), answers[i].reference)
		}
		if found == nil {
			t.Errorf("not found: %s", name)
		}
	}
}

// readyPair also waits until both servers know their version, which takes etcd some seconds.
func readyPair(t *testing.T) (*side, *side, func()) {
	subject, reference, stop := pair(t, memoryDir(t), tokenFlags(t, false)...)
	version := func(s *side) string {
		a := s.call(request{body: &pb.StatusRequest{}})
		if a.code != codes.OK {
			return a.text
		}
		return a.message.(*pb.StatusResponse).StorageVersion
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		ours, theirs := version(subject), version(reference)
		if ours == theirs && strings.HasPrefix(ours, "3.7.") {
			return subject, reference, stop
		}
		if time.Now().After(end) {
			t.Fatalf("versions: %q, and %q of the reference", ours, theirs)
		}
	}
}

// keptAnswers returns the answers of a walk over two real etcd servers, in which nothing may differ.
func keptAnswers(t *testing.T) []difference {
	t.Setenv("VIGIL_BIN", harness.Peer())
	subject, reference, stop := readyPair(t)
	defer stop()
	var answers []difference
	w := newWalk(subject, reference, false)
	w.keep = func(r request, ours, theirs answer) {
		answers = append(answers, difference{r, clone(ours), clone(theirs)})
	}
	if found := w.run(1, 1000); found != nil {
		t.Fatalf("two etcd servers differ:\n%v", found)
	}
	return answers
}

func clone(a answer) answer {
	if a.message != nil {
		a.message = proto.Clone(a.message)
	}
	return a
}
