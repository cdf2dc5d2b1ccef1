package migration

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// pair is a real etcd and a Vigil that should give the same answers.
type pair struct {
	*testing.T
	ctx   context.Context
	etcd  *clientv3.Client
	vigil *clientv3.Client
}

func (p *pair) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func sameKVs(a, b []*mvccpb.KeyValue) bool {
	return slices.EqualFunc(a, b, func(x, y *mvccpb.KeyValue) bool { return proto.Equal(x, y) })
}

func (p *pair) get(key string, options ...clientv3.OpOption) *clientv3.GetResponse {
	p.Helper()
	want, err := p.etcd.Get(p.ctx, key, options...)
	p.must(err)
	got, err := p.vigil.Get(p.ctx, key, options...)
	p.must(err)
	if got.Header.Revision != want.Header.Revision || got.Count != want.Count ||
		got.More != want.More || !sameKVs(got.Kvs, want.Kvs) {
		p.Fatalf("get %q: revision %d, %d of %d keys; etcd: revision %d, %d of %d keys", key,
			got.Header.Revision, len(got.Kvs), got.Count, want.Header.Revision, len(want.Kvs), want.Count)
	}
	return want
}

// everything compares all current keys. It returns the newest revision.
func (p *pair) everything() int64 {
	p.Helper()
	from := "\x00"
	for {
		page := p.get(from, clientv3.WithFromKey(), clientv3.WithLimit(5000))
		if !page.More {
			return page.Header.Revision
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func (p *pair) hash(revision int64) int64 {
	p.Helper()
	want, err := p.etcd.HashKV(p.ctx, p.etcd.Endpoints()[0], revision)
	p.must(err)
	got, err := p.vigil.HashKV(p.ctx, p.vigil.Endpoints()[0], revision)
	p.must(err)
	if got.Hash != want.Hash || got.CompactRevision != want.CompactRevision {
		p.Errorf("hash at %d is %d, compacted at %d; etcd's is %d, compacted at %d", revision, got.Hash,
			got.CompactRevision, want.Hash, want.CompactRevision)
	}
	return want.CompactRevision
}

// past compares reads at revisions from the compacted one on.
func (p *pair) past(compacted, newest int64, keys int) {
	p.Helper()
	step := max(1, (newest-compacted)/23)
	for revision := max(compacted, 1); revision <= newest; revision += step {
		p.get("", clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithCountOnly())
		for _, from := range []int{0, keys / 9, keys/8 - 10, keys / 6, keys/3 + 40} {
			p.get(key(from), clientv3.WithRange(key(from+60)), clientv3.WithRev(revision))
		}
		p.get("single", clientv3.WithRev(revision))
		if revision > compacted { // at the compacted revision etcd may return an older, cached hash
			p.hash(revision)
		}
	}
	if compacted > 1 {
		for _, client := range []*clientv3.Client{p.etcd, p.vigil} {
			_, err := client.Get(p.ctx, "x", clientv3.WithRev(compacted-1))
			if !errors.Is(err, rpctypes.ErrCompacted) {
				p.Errorf("a read below the compacted revision: %v", err)
			}
		}
	}
}

type event struct {
	kind     mvccpb.Event_EventType
	revision int64
	kv, prev string
}

func textOf(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return ""
	}
	return fmt.Sprintf("%q %d %d %d %d %q", kv.Key, kv.CreateRevision, kv.ModRevision, kv.Version,
		kv.Lease, kv.Value)
}

// events watches from a revision up to the newest one. For an event at the compacted revision, the
// previous value is missing in etcd, while Vigil may still have it.
func (p *pair) events(client *clientv3.Client, compacted, from, newest int64) []event {
	p.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var events []event
	for response := range client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(from),
		clientv3.WithPrevKV(), clientv3.WithFragment()) {
		p.must(response.Err())
		for _, e := range response.Events {
			if e.Kv.ModRevision == compacted {
				e.PrevKv = nil
			}
			events = append(events, event{e.Type, e.Kv.ModRevision, textOf(e.Kv), textOf(e.PrevKv)})
		}
		if len(events) > 0 && events[len(events)-1].revision >= newest {
			return events
		}
	}
	p.Fatal("the watch has ended")
	return nil
}

func (p *pair) watch(compacted, from, newest int64) {
	p.Helper()
	want, got := p.events(p.etcd, compacted, from, newest), p.events(p.vigil, compacted, from, newest)
	if !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		p.Errorf("events from %d differ: %d, etcd has %d; from %d on: %v, etcd: %v", from, len(got),
			len(want), at, got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
	}
}

func (p *pair) leases() {
	p.Helper()
	want, err := p.etcd.Leases(p.ctx)
	p.must(err)
	got, err := p.vigil.Leases(p.ctx)
	p.must(err)
	ids := func(response *clientv3.LeaseLeasesResponse) []clientv3.LeaseID {
		var ids []clientv3.LeaseID
		for _, lease := range response.Leases {
			ids = append(ids, lease.ID)
		}
		slices.Sort(ids)
		return ids
	}
	if !slices.Equal(ids(got), ids(want)) {
		p.Errorf("leases %x, etcd has %x", ids(got), ids(want))
	}
	for _, id := range ids(want) {
		w, err := p.etcd.TimeToLive(p.ctx, id, clientv3.WithAttachedKeys())
		p.must(err)
		g, err := p.vigil.TimeToLive(p.ctx, id, clientv3.WithAttachedKeys())
		p.must(err)
		keys := func(r *clientv3.LeaseTimeToLiveResponse) []string {
			var keys []string
			for _, key := range r.Keys {
				keys = append(keys, string(key))
			}
			slices.Sort(keys)
			return keys
		}
		if g.GrantedTTL != w.GrantedTTL || !slices.Equal(keys(g), keys(w)) {
			p.Errorf("lease %x: %d s, %d keys; etcd: %d s, %d keys", id, g.GrantedTTL, len(g.Keys),
				w.GrantedTTL, len(w.Keys))
		}
	}
}

// users compares users and roles.
func (p *pair) users() {
	p.Helper()
	want, err := p.etcd.UserList(p.ctx)
	p.must(err)
	got, err := p.vigil.UserList(p.ctx)
	p.must(err)
	if !slices.Equal(got.Users, want.Users) {
		p.Errorf("users %q, etcd has %q", got.Users, want.Users)
	}
	for _, name := range want.Users {
		w, err := p.etcd.UserGet(p.ctx, name)
		p.must(err)
		g, err := p.vigil.UserGet(p.ctx, name)
		p.must(err)
		if !slices.Equal(g.Roles, w.Roles) {
			p.Errorf("roles of %s: %q, etcd has %q", name, g.Roles, w.Roles)
		}
	}
	roles, err := p.etcd.RoleList(p.ctx)
	p.must(err)
	for _, name := range roles.Roles {
		w, err := p.etcd.RoleGet(p.ctx, name)
		p.must(err)
		g, err := p.vigil.RoleGet(p.ctx, name)
		p.must(err)
		if !reflect.DeepEqual(fmt.Sprint(g.Perm), fmt.Sprint(w.Perm)) {
			p.Errorf("role %s: %v, etcd has %v", name, g.Perm, w.Perm)
		}
	}
	status, err := p.etcd.AuthStatus(p.ctx)
	p.must(err)
	ours, err := p.vigil.AuthStatus(p.ctx)
	p.must(err)
	if ours.Enabled != status.Enabled || ours.AuthRevision != status.AuthRevision {
		p.Errorf("authentication: %v %d, etcd has %v %d", ours.Enabled, ours.AuthRevision, status.Enabled,
			status.AuthRevision)
	}
}

// identity compares the IDs of cluster and member.
func (p *pair) identity() {
	p.Helper()
	want, err := p.etcd.Get(p.ctx, "x")
	p.must(err)
	got, err := p.vigil.Get(p.ctx, "x")
	p.must(err)
	if got.Header.ClusterId != want.Header.ClusterId || got.Header.MemberId != want.Header.MemberId {
		p.Errorf("cluster %x, member %x; etcd's are %x and %x", got.Header.ClusterId,
			got.Header.MemberId, want.Header.ClusterId, want.Header.MemberId)
	}
	members, err := p.vigil.MemberList(p.ctx)
	p.must(err)
	if len(members.Members) != 1 || members.Members[0].ID != want.Header.MemberId {
		p.Errorf("members %v, etcd's id is %x", members.Members, want.Header.MemberId)
	}
}

// all compares everything, with samples where it is long.
func (p *pair) all(keys int) {
	p.Helper()
	newest := p.everything()
	compacted := p.hash(0)
	p.past(compacted, newest, keys)
	p.watch(compacted, max(compacted, 1), newest)
	p.watch(compacted, (compacted+newest)/2, newest)
	p.leases()
}
