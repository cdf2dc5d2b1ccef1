package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fruit puts seven keys with known revisions, versions and values; the store is at revision 11 then.
//
//	key    create mod version value
//	a      2      9   2       m
//	ab     3      3   1       k
//	abc    4      4   1       j
//	b      5      11  3       z
//	b\x00  6      6   1       d
//	c      7      7   1       c
//	\xff   8      8   1       b
func fruit(f *fixture) {
	f.put("a", "l")
	f.put("ab", "k")
	f.put("abc", "j")
	f.put("b", "x")
	f.put("b\x00", "d")
	f.put("c", "c")
	f.put("\xff", "b")
	f.put("a", "m")
	f.put("b", "y")
	f.put("b", "z")
}

func TestFreshStoreIsAtRevisionOne(t *testing.T) {
	f := newFixture(t)
	r := f.get("a")
	want(f, "revision", r.Header.Revision, 1)
	want(f, "count", r.Count, 0)
	want(f, "first write", f.put("a", "1").Header.Revision, 2)
}

func TestHeaderNamesClusterAndMember(t *testing.T) {
	f := newFixture(t)
	h := f.put("a", "1").Header
	if h.ClusterId == 0 || h.MemberId == 0 || h.RaftTerm == 0 {
		t.Errorf("header %v", h)
	}
	again := f.get("a").Header
	want(f, "cluster", again.ClusterId, h.ClusterId)
	want(f, "member", again.MemberId, h.MemberId)
	want(f, "term", again.RaftTerm, h.RaftTerm)
}

func TestRangeEndForms(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	f.wantKeys(f.get("ab").Kvs, "ab")
	f.wantKeys(f.get("aa").Kvs, "")
	f.wantKeys(f.get("a", clientv3.WithPrefix()).Kvs, "a ab abc")
	f.wantKeys(f.get("\xff", clientv3.WithPrefix()).Kvs, "\xff")
	f.wantKeys(f.get("b", clientv3.WithRange("c")).Kvs, "b b\x00")
	f.wantKeys(f.get("b", clientv3.WithRange("b")).Kvs, "")
	f.wantKeys(f.get("c", clientv3.WithRange("a")).Kvs, "")
	f.wantKeys(f.get("c", clientv3.WithFromKey()).Kvs, "c \xff")
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "a ab abc b b\x00 c \xff")
	f.wantKeys(f.get("\x00", clientv3.WithFromKey()).Kvs, "a ab abc b b\x00 c \xff")
	f.wantKeys(f.get("b", clientv3.WithRange("b\x00")).Kvs, "b")
}

func TestRangeShowsEveryField(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	f.wantKV(f.get("b").Kvs[0], "b=z 5/11/3")
	f.wantKV(f.get("ab").Kvs[0], "ab=k 3/3/1")
	want(f, "header revision", f.get("ab").Header.Revision, 11)
}

func TestRangeLimitCountAndMore(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	for _, limit := range []int64{1, 3, 6} {
		r := f.get("", clientv3.WithPrefix(), clientv3.WithLimit(limit))
		want(f, "length", int64(len(r.Kvs)), limit)
		want(f, "more", r.More, true)
		want(f, "count", r.Count, 7)
	}
	for _, limit := range []int64{0, 7, 8, math.MaxInt64} {
		r := f.get("", clientv3.WithPrefix(), clientv3.WithLimit(limit))
		want(f, "length", len(r.Kvs), 7)
		want(f, "more", r.More, false)
	}
}

func TestRangeAtRevision(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	r := f.get("b", clientv3.WithRev(10))
	f.wantKV(r.Kvs[0], "b=y 5/10/2")
	want(f, "header revision", r.Header.Revision, 11)
	want(f, "count before it was created", f.get("b", clientv3.WithRev(4)).Count, 0)
	want(f, "count of all then", f.get("", clientv3.WithPrefix(), clientv3.WithRev(4)).Count, 3)
	_, err := f.client.Get(f.ctx, "b", clientv3.WithRev(12))
	f.wantError(err, rpctypes.ErrFutureRev)
}

func TestRangeSeesDeletedKeyAtOldRevision(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.delete("a")
	f.put("a", "2")
	want(f, "count at the deletion", f.get("a", clientv3.WithRev(3)).Count, 0)
	f.wantKV(f.get("a", clientv3.WithRev(2)).Kvs[0], "a=1 2/2/1")
	f.wantKV(f.get("a").Kvs[0], "a=2 4/4/1")
}

func TestRangeSorts(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	for _, c := range []struct {
		target clientv3.SortTarget
		order  clientv3.SortOrder
		keys   string
	}{
		{clientv3.SortByKey, clientv3.SortAscend, "a ab abc b b\x00 c \xff"},
		{clientv3.SortByKey, clientv3.SortDescend, "\xff c b\x00 b abc ab a"},
		{clientv3.SortByCreateRevision, clientv3.SortDescend, "\xff c b\x00 b abc ab a"},
		{clientv3.SortByModRevision, clientv3.SortAscend, "ab abc b\x00 c \xff a b"},
		{clientv3.SortByModRevision, clientv3.SortDescend, "b a \xff c b\x00 abc ab"},
		{clientv3.SortByModRevision, clientv3.SortNone, "ab abc b\x00 c \xff a b"},
		{clientv3.SortByValue, clientv3.SortAscend, "\xff c b\x00 abc ab a b"},
		{clientv3.SortByValue, clientv3.SortDescend, "b a ab abc b\x00 c \xff"},
		{clientv3.SortByVersion, clientv3.SortAscend, "ab abc b\x00 c \xff a b"},
	} {
		r := f.get("", clientv3.WithPrefix(), clientv3.WithSort(c.target, c.order))
		f.wantKeys(r.Kvs, c.keys)
	}
}

func TestRangeSortsBeforeItLimits(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	r := f.get("", clientv3.WithPrefix(), clientv3.WithLimit(2),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	f.wantKeys(r.Kvs, "b a")
	want(f, "more", r.More, true)
	want(f, "count", r.Count, 7)
}

func TestRangeWithoutSortOrderLimitsBeforeItSorts(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	r, err := f.kv().Range(f.ctx, &pb.RangeRequest{
		Key: []byte{0}, RangeEnd: []byte{0}, Limit: 2, SortTarget: pb.RangeRequest_MOD,
	})
	f.must(err)
	// a, ab and abc were read (one more than the limit), sorted, and then cut.
	f.wantKeys(r.Kvs, "ab abc")
}

func TestRangeFirstAndLast(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	f.wantKeys(f.get("a", clientv3.WithFirstKey()...).Kvs, "a")
	f.wantKeys(f.get("a", clientv3.WithLastKey()...).Kvs, "abc")
	f.wantKeys(f.get("a", clientv3.WithFirstCreate()...).Kvs, "a")
	f.wantKeys(f.get("a", clientv3.WithLastCreate()...).Kvs, "abc")
	f.wantKeys(f.get("a", clientv3.WithFirstRev()...).Kvs, "ab")
	f.wantKeys(f.get("a", clientv3.WithLastRev()...).Kvs, "a")
}

func TestRangeFiltersByRevision(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	all := clientv3.WithPrefix()
	f.wantKeys(f.get("", all, clientv3.WithMinModRev(8)).Kvs, "a b \xff")
	f.wantKeys(f.get("", all, clientv3.WithMaxModRev(6)).Kvs, "ab abc b\x00")
	f.wantKeys(f.get("", all, clientv3.WithMinCreateRev(6)).Kvs, "b\x00 c \xff")
	f.wantKeys(f.get("", all, clientv3.WithMaxCreateRev(3)).Kvs, "a ab")
	r := f.get("", all, clientv3.WithMinModRev(4), clientv3.WithMaxModRev(8), clientv3.WithLimit(2))
	f.wantKeys(r.Kvs, "abc b\x00")
	want(f, "count ignores filters", r.Count, 7)
	want(f, "more", r.More, true)
}

func TestRangeKeysOnlyAndCountOnly(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	r := f.get("a", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	f.wantKeys(r.Kvs, "a ab abc")
	f.wantKV(r.Kvs[0], "a= 2/9/2")
	f.wantKeys(f.get("a", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend)).Kvs, "abc ab a")
	r = f.get("a", clientv3.WithPrefix(), clientv3.WithCountOnly())
	want(f, "count", r.Count, 3)
	want(f, "length", len(r.Kvs), 0)
	want(f, "count with limit", f.get("a", clientv3.WithPrefix(), clientv3.WithCountOnly(),
		clientv3.WithLimit(1)).Count, 3)
}

func TestRangeSerializable(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	f.wantKeys(f.get("a", clientv3.WithPrefix(), clientv3.WithSerializable()).Kvs, "a ab abc")
}

func TestRangeRefusesInvalidRequests(t *testing.T) {
	f := newFixture(t)
	kv := f.kv()
	_, err := kv.Range(f.ctx, &pb.RangeRequest{})
	f.wantError(err, rpctypes.ErrGRPCEmptyKey)
	_, err = kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a"), SortOrder: 3})
	f.wantError(err, rpctypes.ErrGRPCInvalidSortOption)
	_, err = kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a"), SortTarget: 5})
	f.wantError(err, rpctypes.ErrGRPCInvalidSortOption)
	_, err = kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a"), SortTarget: -1})
	f.wantError(err, rpctypes.ErrGRPCInvalidSortOption)
}

func TestRangeOfManyLargeValues(t *testing.T) {
	f := newFixture(t)
	value := strings.Repeat("v", 100_000)
	for i := range 200 {
		f.put(fmt.Sprintf("k%03d", i), value)
	}
	r := f.get("k", clientv3.WithPrefix())
	want(f, "length", len(r.Kvs), 200)
	for i, kv := range r.Kvs {
		if string(kv.Key) != fmt.Sprintf("k%03d", i) || string(kv.Value) != value {
			t.Fatalf("key %d is %s with %d bytes", i, kv.Key, len(kv.Value))
		}
	}
}

func (f *fixture) stream(key string, opts ...clientv3.OpOption) *clientv3.GetResponse {
	f.Helper()
	c, err := f.client.GetStream(f.ctx, key, opts...)
	f.must(err)
	r, err := clientv3.GetStreamToGetResponse(c)
	f.must(err)
	return r
}

func (f *fixture) streamError(r *pb.RangeRequest) error {
	f.Helper()
	s, err := f.kv().RangeStream(f.ctx, r)
	f.must(err)
	_, err = s.Recv()
	return err
}

func TestRangeStreamReturnsTheSameAsRange(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	for i := range 500 {
		f.put(fmt.Sprintf("n%04d", i), strings.Repeat("v", i*37%5000))
	}
	for _, opts := range [][]clientv3.OpOption{
		{clientv3.WithPrefix()},
		{clientv3.WithPrefix(), clientv3.WithLimit(1)},
		{clientv3.WithPrefix(), clientv3.WithLimit(123)},
		{clientv3.WithPrefix(), clientv3.WithKeysOnly()},
		{clientv3.WithPrefix(), clientv3.WithCountOnly()},
		{clientv3.WithPrefix(), clientv3.WithRev(7)},
		{clientv3.WithPrefix(), clientv3.WithSerializable()},
		{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend)},
	} {
		streamed, whole := f.stream("", opts...), f.get("", opts...)
		want(f, "revision", streamed.Header.Revision, whole.Header.Revision)
		want(f, "count", streamed.Count, whole.Count)
		want(f, "more", streamed.More, whole.More)
		same := slices.EqualFunc(streamed.Kvs, whole.Kvs, func(a, b *mvccpb.KeyValue) bool {
			return a.String() == b.String()
		})
		want(f, "same keys", same, true)
	}
	want(f, "a missing key", f.stream("zzz").Count, 0)
}

func TestRangeStreamPutsHeaderOnLastChunkOnly(t *testing.T) {
	f := newFixture(t)
	for i := range 100 {
		f.put(fmt.Sprintf("k%04d", i), strings.Repeat("v", 60_000))
	}
	s, err := f.kv().RangeStream(f.ctx, &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
	f.must(err)
	chunks, keys := 0, 0
	for {
		chunk, err := s.Recv()
		f.must(err)
		chunks++
		r := chunk.RangeResponse
		keys += len(r.Kvs)
		if r.Header != nil {
			want(f, "count", r.Count, 100)
			want(f, "revision", r.Header.Revision, 101)
			break
		}
		if r.Count != 0 || r.More {
			t.Errorf("chunk %d has count or more", chunks)
		}
	}
	want(f, "keys", keys, 100)
	if chunks < 3 {
		t.Errorf("6 MB came in %d chunks", chunks)
	}
}

func TestRangeStreamRefusals(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	key := []byte("a")
	f.wantError(f.streamError(&pb.RangeRequest{}), rpctypes.ErrGRPCEmptyKey)
	f.wantError(f.streamError(&pb.RangeRequest{Key: key, Revision: 99}), rpctypes.ErrGRPCFutureRev)
	f.wantError(f.streamError(&pb.RangeRequest{Key: key, SortOrder: 9}), rpctypes.ErrGRPCInvalidSortOption)
	f.wantError(f.streamError(&pb.RangeRequest{Key: key, SortOrder: pb.RangeRequest_DESCEND}),
		status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders"))
	f.wantError(f.streamError(&pb.RangeRequest{Key: key, MinModRevision: 1}),
		status.Error(codes.Unimplemented, "RangeStream does not support revision filters"))
	f.put("a", "2")
	f.compact(3)
	f.wantError(f.streamError(&pb.RangeRequest{Key: key, Revision: 2}), rpctypes.ErrGRPCCompacted)
}
