package conformance

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

const compacted = "etcdserver: mvcc: required revision has been compacted"

func TestWatchCallIDs(t *testing.T) {
	f := newFixture(t)
	c := f.call()
	key := []byte("k")
	c.create(&pb.WatchCreateRequest{Key: key})
	c.want("0 created")
	c.create(&pb.WatchCreateRequest{Key: key})
	c.want("1 created")
	c.create(&pb.WatchCreateRequest{Key: key, WatchId: 2})
	c.want("2 created")
	c.create(&pb.WatchCreateRequest{Key: key})
	c.want("3 created")
	c.create(&pb.WatchCreateRequest{Key: key, WatchId: 1000})
	c.want("1000 created")
	c.create(&pb.WatchCreateRequest{Key: key, WatchId: 2})
	c.want("-1 created canceled because mvcc: duplicate watch ID provided on the WatchStream")
	c.cancelWatch(2)
	c.want("2 canceled")
	c.cancelWatch(2)
	c.cancelWatch(77)
	c.create(&pb.WatchCreateRequest{Key: key, WatchId: 2})
	c.want("2 created") // no answer for unknown IDs
	f.put("k", "1")
	got := map[string]bool{}
	for range 5 {
		got[describe(c.next())] = true
	}
	for _, id := range []int64{0, 1, 2, 3, 1000} {
		want(f, fmt.Sprintf("event for %d", id), got[fmt.Sprintf("%d events 1", id)], true)
	}
	c.wantQuiet()
}

func TestWatchCallRefusals(t *testing.T) {
	f := newFixture(t)
	f.put("k", "1")
	c := f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")})
	c.want("-1 created canceled because mvcc: watcher range is empty")
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("b")})
	c.want("-1 created canceled because mvcc: watcher range is empty")
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), StartRevision: -1})
	r := c.want("-1 created canceled because " + compacted)
	want(f, "header revision", r.Header.Revision, 2)
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte{0}})
	c.want("0 created")
}

func TestWatchCallCompacted(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.put("k", fmt.Sprint(i))
	}
	f.compact(8)
	c := f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 3})
	r := c.want("0 created")
	want(f, "header revision", r.Header.Revision, 11)
	r = c.want("0 canceled compacted 8")
	want(f, "header revision", r.Header.Revision, 0)
}

func TestWatchCallHeaders(t *testing.T) {
	f := newFixture(t)
	put := f.put("k", "1")
	f.put("k", "2")
	c := f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 2})
	created := c.want("0 created")
	want(f, "revision of created", created.Header.Revision, 3)
	past := c.want("0 events 2")
	want(f, "revision of catching up", past.Header.Revision, 3)
	f.put("k", "3")
	live := c.want("0 events 1")
	want(f, "revision of live", live.Header.Revision, 4)
	f.put("other", "1")
	c.progress()
	progress := c.want("-1")
	want(f, "revision of progress", progress.Header.Revision, 5)
	c.cancelWatch(0)
	canceled := c.want("0 canceled")
	want(f, "revision of canceled", canceled.Header.Revision, 5)
	for _, r := range []*pb.WatchResponse{created, past, live, progress, canceled} {
		want(f, "cluster", r.Header.ClusterId, put.Header.ClusterId)
		want(f, "member", r.Header.MemberId, put.Header.MemberId)
		want(f, "term", r.Header.RaftTerm, put.Header.RaftTerm)
	}
}

func TestWatchCallDeleteEvents(t *testing.T) {
	f := newFixture(t)
	c := f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), PrevKv: true})
	c.want("0 created")
	f.put("k", "1")
	put := c.want("0 events 1").Events[0]
	f.wantKV(put.Kv, "k=1 2/2/1")
	want(f, "no previous", put.PrevKv == nil, true)
	f.delete("k")
	del := c.want("0 events 1").Events[0]
	f.wantKV(del.Kv, "k= 0/3/0")
	f.wantKV(del.PrevKv, "k=1 2/2/1")
}

func TestWatchCallProgressWaitsForAFutureStart(t *testing.T) {
	f := newFixture(t)
	c := f.call()
	c.progress()
	c.wantQuiet() // there is no watch
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 10})
	c.want("0 created")
	c.progress()
	c.wantQuiet()
	c.cancelWatch(0)
	c.want("0 canceled")
	c.create(&pb.WatchCreateRequest{Key: []byte("k")})
	c.want("1 created")
	c.progress()
	c.want("-1")
}

func TestWatchCallContinuesAfterHalfClose(t *testing.T) {
	f := newFixture(t)
	c := f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("k")})
	c.want("0 created")
	f.must(c.stream.CloseSend())
	f.put("k", "1")
	c.want("0 events 1")
	f.put("k", "2")
	c.want("0 events 1")
}

func TestWatchCallIgnoresUnknownRequests(t *testing.T) {
	f := newFixture(t)
	c := f.call()
	f.must(c.stream.Send(&pb.WatchRequest{}))
	unknown := &pb.WatchRequest{}
	f.must(proto.Unmarshal([]byte{0xa2, 0x06, 0x01, 'x'}, unknown))
	f.must(c.stream.Send(unknown))
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), Filters: []pb.WatchCreateRequest_FilterType{7}})
	c.want("0 created")
	f.put("k", "1")
	c.want("0 events 1")
}

func bigTxn(f *fixture, keys, bytes int) {
	f.Helper()
	value := strings.Repeat("v", bytes)
	var ops []clientv3.Op
	for i := range keys {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("k%03d", i), value))
	}
	_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
	f.must(err)
}

func TestWatchCallFragments(t *testing.T) {
	f := newFixture(t)
	const keys, bytes = 14, 100 << 10
	bigTxn(f, keys, bytes)
	bigTxn(f, keys, bytes)
	c := f.call()
	// With previous values a revision is twice as long as the limit of a request.
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), StartRevision: 2,
		PrevKv: true, Fragment: true})
	c.want("0 created")
	seen, pieces := 0, 0
	for seen < 2*keys {
		r := c.next()
		want(f, "size", proto.Size(r) < 3<<20, true)
		for _, event := range r.Events {
			want(f, "key", string(event.Kv.Key), fmt.Sprintf("k%03d", seen%keys))
			want(f, "revision", event.Kv.ModRevision, int64(2+seen/keys))
			want(f, "previous", event.PrevKv != nil, seen >= keys)
			seen++
		}
		if r.Fragment {
			pieces++
		} else {
			want(f, "whole revisions", seen%keys, 0)
		}
	}
	if pieces == 0 {
		t.Error("the response was not fragmented")
	}
	// Without the option responses are not fragmented.
	c = f.call()
	c.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), StartRevision: 3, PrevKv: true})
	c.want("0 created")
	c.want(fmt.Sprintf("0 events %d", keys))
}

func TestWatchCallLiveFragments(t *testing.T) {
	f := newFixture(t)
	const keys, bytes = 14, 100 << 10
	bigTxn(f, keys, bytes)
	c := f.call()
	for range 3 {
		c.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), PrevKv: true, Fragment: true})
		c.next()
	}
	bigTxn(f, keys, bytes)
	// The fragments of one response are contiguous.
	done := map[int64]bool{}
	for len(done) < 3 {
		r := c.next()
		id, seen := r.WatchId, len(r.Events)
		for r.Fragment {
			r = c.next()
			want(f, "watch", r.WatchId, id)
			seen += len(r.Events)
		}
		want(f, "events", seen, keys)
		want(f, "sent twice", done[id], false)
		done[id] = true
	}
}

func TestWatchCallManyCreatesAtOnce(t *testing.T) {
	f := newFixture(t)
	const count = 3000
	c := f.call()
	for i := range count {
		c.create(&pb.WatchCreateRequest{Key: fmt.Appendf(nil, "k%04d", i)})
	}
	for i := range count {
		c.want(fmt.Sprintf("%d created", i))
	}
	f.put("k2999", "1")
	c.want("2999 events 1")
}
