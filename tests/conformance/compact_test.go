package conformance

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

func TestCompactHidesOldRevisions(t *testing.T) {
	f := newFixture(t)
	for i := range 5 {
		f.put("a", fmt.Sprint(i)) // revisions 2 to 6
	}
	r, err := f.client.Compact(f.ctx, 4)
	f.must(err)
	want(f, "header revision", r.Header.Revision, 6)
	_, err = f.client.Get(f.ctx, "a", clientv3.WithRev(3))
	f.wantError(err, rpctypes.ErrCompacted)
	f.wantKV(f.get("a", clientv3.WithRev(4)).Kvs[0], "a=2 2/4/3")
	f.wantKV(f.get("a").Kvs[0], "a=4 2/6/5")
}

func TestCompactRefusals(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("a", "2")
	_, err := f.client.Compact(f.ctx, 4)
	f.wantError(err, rpctypes.ErrFutureRev)
	f.compact(3)
	_, err = f.client.Compact(f.ctx, 3)
	f.wantError(err, rpctypes.ErrCompacted)
	_, err = f.client.Compact(f.ctx, 2)
	f.wantError(err, rpctypes.ErrCompacted)
}

func TestCompactKeepsLiveKeysAndRemovesDeletedOnes(t *testing.T) {
	f := newFixture(t)
	f.put("live", "1")
	f.put("dead", "1")
	f.delete("dead")
	f.put("live", "2")
	f.compact(5)
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "live")
	f.put("dead", "again")
	f.wantKV(f.get("dead").Kvs[0], "dead=again 6/6/1")
	f.wantKV(f.get("live", clientv3.WithRev(5)).Kvs[0], "live=2 2/5/2")
}

func TestCompactPhysicalOnManyVersions(t *testing.T) {
	f := newFixture(t)
	for i := range 2000 {
		f.put(fmt.Sprintf("k%d", i%20), fmt.Sprint(i))
	}
	f.compact(1900)
	want(f, "keys then", f.get("k", clientv3.WithPrefix(), clientv3.WithRev(1900)).Count, 20)
	want(f, "keys now", f.get("k", clientv3.WithPrefix()).Count, 20)
	f.wantKV(f.get("k19").Kvs[0], "k19=1999 21/2001/100")
}

func TestHashKVEqualsEtcds(t *testing.T) {
	f := newFixture(t)
	peer := fixtureOn(t, harness.StartBinary(t, harness.Peer(), harness.Options{}))
	steps := []func(*fixture){
		func(*fixture) {},
		fruit,
		func(f *fixture) { f.delete("a", clientv3.WithPrefix()) },
		func(f *fixture) { f.put("a", "again") },
		func(f *fixture) { f.compact(12) },
		func(f *fixture) { f.put("b", "more") },
		func(f *fixture) { f.delete("b") },
		func(f *fixture) { f.compact(15) },
	}
	for i, step := range steps {
		step(f)
		step(peer)
		for revision := int64(0); revision <= f.revision(); revision++ {
			ours, err := f.client.HashKV(f.ctx, f.server.Addr, revision)
			theirs, peerErr := peer.client.HashKV(f.ctx, peer.server.Addr, revision)
			what := fmt.Sprintf("after step %d, revision %d: ", i, revision)
			want(f, what+"error", fmt.Sprint(err), fmt.Sprint(peerErr))
			if err == nil && peerErr == nil {
				want(f, what+"hash", ours.Hash, theirs.Hash)
				want(f, what+"compact revision", ours.CompactRevision, theirs.CompactRevision)
				want(f, what+"hash revision", ours.HashRevision, theirs.HashRevision)
			}
		}
	}
}

func TestEverythingExistsAfterARestart(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	f.delete("ab")
	f.compact(10)
	before := f.get("", clientv3.WithPrefix())
	hash, err := f.client.HashKV(f.ctx, f.server.Addr, 0)
	f.must(err)
	f.must(f.server.Stop())
	again := fixtureOn(t, harness.Start(t, harness.Options{Dir: f.server.Dir}))
	after := again.get("", clientv3.WithPrefix())
	want(again, "keys", fmt.Sprint(after.Kvs), fmt.Sprint(before.Kvs))
	want(again, "revision", after.Header.Revision, before.Header.Revision)
	want(again, "cluster", after.Header.ClusterId, before.Header.ClusterId)
	want(again, "member", after.Header.MemberId, before.Header.MemberId)
	_, err = again.client.Get(again.ctx, "a", clientv3.WithRev(9))
	again.wantError(err, rpctypes.ErrCompacted)
	rehash, err := again.client.HashKV(again.ctx, again.server.Addr, 0)
	again.must(err)
	want(again, "hash", rehash.Hash, hash.Hash)
	want(again, "next revision", again.put("new", "1").Header.Revision, before.Header.Revision+1)
}
