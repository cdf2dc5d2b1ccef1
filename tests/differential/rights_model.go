package differential

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// rights is a simple model of permissions, as sets of keys of a small universe. A request is allowed if
// each of its keys is. Ends of ranges have one or two letters, and between any two of them the universe
// has a key, so that a range is allowed if all of its keys in the universe are.
type rights struct {
	users map[string]map[string]bool // the roles of each
	roles map[string]map[grant]access
	lease map[int64][]string // the keys of each
}

type grant struct{ key, end string }

type access int

const (
	reads access = 1 << iota
	writes
)

// universe has all keys of up to three letters, including NUL.
var universe = func() []string {
	var keys, last []string
	last = []string{""}
	for range 3 {
		var longer []string
		for _, begin := range last {
			for _, letter := range "\x00abc" {
				longer = append(longer, begin+string(letter))
			}
		}
		keys, last = append(keys, longer...), longer
	}
	return keys
}()

func newRights() *rights {
	return &rights{users: map[string]map[string]bool{}, roles: map[string]map[grant]access{},
		lease: map[int64][]string{}}
}

func inRange(one, key, end string) bool {
	switch end {
	case "":
		return one == key
	case "\x00":
		return one >= key
	}
	return one >= key && one < end
}

func (m *rights) mayKey(user string, need access, one string) bool {
	for role := range m.users[user] {
		for g, given := range m.roles[role] {
			if given&need != 0 && inRange(one, g.key, g.end) {
				return true
			}
		}
	}
	return false
}

// may decides: nothing is allowed without credentials, everything for root, and otherwise key by key.
func (m *rights) may(user string, need access, key, end string) bool {
	roles, is := m.users[user]
	if !is || roles["root"] {
		return is
	}
	for _, one := range universe {
		if inRange(one, key, end) && !m.mayKey(user, need, one) {
			return false
		}
	}
	return true
}

func (m *rights) mayLease(user string, need access, lease int64) bool {
	for _, key := range m.lease[lease] {
		if !m.may(user, need, key, "") {
			return false
		}
	}
	return m.users[user] != nil
}

func (m *rights) mayPut(user string, p *pb.PutRequest) bool {
	return m.may(user, writes, string(p.Key), "") && (p.Lease == 0 || m.mayLease(user, writes, p.Lease)) &&
		(!p.PrevKv || m.may(user, reads, string(p.Key), ""))
}

func (m *rights) mayDelete(user string, d *pb.DeleteRangeRequest) bool {
	return m.may(user, writes, string(d.Key), string(d.RangeEnd)) &&
		(!d.PrevKv || m.may(user, reads, string(d.Key), string(d.RangeEnd)))
}

func (m *rights) mayTxn(user string, t *pb.TxnRequest) bool {
	allowed := m.users[user] != nil
	for _, c := range t.Compare {
		allowed = allowed && m.may(user, reads, string(c.Key), string(c.RangeEnd))
	}
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			allowed = allowed && m.mayRequest(user, opBody(op))
		}
	}
	return allowed
}

func opBody(op *pb.RequestOp) any {
	switch body := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return body.RequestRange
	case *pb.RequestOp_RequestPut:
		return body.RequestPut
	case *pb.RequestOp_RequestDeleteRange:
		return body.RequestDeleteRange
	}
	return op.GetRequestTxn()
}

// mayRequest decides about a whole request.
func (m *rights) mayRequest(user string, body any) bool {
	switch r := body.(type) {
	case *pb.RangeRequest:
		return m.may(user, reads, string(r.Key), string(r.RangeEnd))
	case *pb.PutRequest:
		return m.mayPut(user, r)
	case *pb.DeleteRangeRequest:
		return m.mayDelete(user, r)
	case *pb.TxnRequest:
		return m.mayTxn(user, r)
	case *pb.WatchCreateRequest:
		return m.may(user, reads, string(r.Key), string(r.RangeEnd))
	case *pb.LeaseTimeToLiveRequest:
		return m.users[user] != nil && (!r.Keys || m.mayLease(user, reads, r.ID))
	case *pb.LeaseKeepAliveRequest:
		return m.mayLease(user, writes, r.ID)
	case *pb.LeaseLeasesRequest:
		allowed := m.users[user] != nil
		for lease := range m.lease {
			allowed = allowed && m.mayLease(user, reads, lease)
		}
		return allowed
	}
	return m.users[user]["root"] // everything else is for administrators
}

// decision says whether an answer means allowed or denied, or neither of them.
func decision(a answer) (allowed, is bool) {
	if w, ok := a.message.(*pb.WatchResponse); ok && w.Canceled {
		return false, strings.Contains(w.CancelReason, denied) || strings.Contains(w.CancelReason, userEmpty)
	}
	if a.code == 0 {
		return true, true
	}
	return false, a.text == denied || a.text == userEmpty
}
