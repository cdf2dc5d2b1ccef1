package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPutCountsRevisionsAndVersions(t *testing.T) {
	f := newFixture(t)
	for i := range 5 {
		want(f, "revision", f.put("a", fmt.Sprint(i)).Header.Revision, int64(i+2))
	}
	f.wantKV(f.get("a").Kvs[0], "a=4 2/6/5")
	f.put("b", "")
	f.wantKV(f.get("b").Kvs[0], "b= 7/7/1")
}

func TestPutReturnsThePreviousValue(t *testing.T) {
	f := newFixture(t)
	f.wantKV(f.put("a", "1", clientv3.WithPrevKV()).PrevKv, "none")
	f.wantKV(f.put("a", "2", clientv3.WithPrevKV()).PrevKv, "a=1 2/2/1")
	f.wantKV(f.put("a", "3").PrevKv, "none")
	f.delete("a")
	f.wantKV(f.put("a", "4", clientv3.WithPrevKV()).PrevKv, "none")
}

func TestPutIgnoreValueKeepsIt(t *testing.T) {
	f := newFixture(t)
	_, err := f.client.Put(f.ctx, "a", "", clientv3.WithIgnoreValue())
	f.wantError(err, rpctypes.ErrKeyNotFound)
	f.put("a", "1")
	f.put("a", "", clientv3.WithIgnoreValue())
	f.wantKV(f.get("a").Kvs[0], "a=1 2/3/2")
	_, err = f.kv().Put(f.ctx, &pb.PutRequest{Key: []byte("a"), Value: []byte("2"), IgnoreValue: true})
	f.wantError(err, rpctypes.ErrGRPCValueProvided)
	want(f, "revision", f.revision(), 3)
}

func TestPutIgnoreLeaseAndUnknownLease(t *testing.T) {
	f := newFixture(t)
	_, err := f.client.Put(f.ctx, "a", "1", clientv3.WithIgnoreLease())
	f.wantError(err, rpctypes.ErrKeyNotFound)
	f.put("a", "1")
	f.put("a", "2", clientv3.WithIgnoreLease())
	f.wantKV(f.get("a").Kvs[0], "a=2 2/3/2")
	_, err = f.kv().Put(f.ctx, &pb.PutRequest{Key: []byte("a"), Lease: 7, IgnoreLease: true})
	f.wantError(err, rpctypes.ErrGRPCLeaseProvided)
	_, err = f.client.Put(f.ctx, "a", "3", clientv3.WithLease(7))
	f.wantError(err, rpctypes.ErrLeaseNotFound)
	want(f, "revision", f.revision(), 3)
}

func TestPutRefusesEmptyKey(t *testing.T) {
	f := newFixture(t)
	_, err := f.kv().Put(f.ctx, &pb.PutRequest{Value: []byte("1")})
	f.wantError(err, rpctypes.ErrGRPCEmptyKey)
	_, err = f.kv().DeleteRange(f.ctx, &pb.DeleteRangeRequest{})
	f.wantError(err, rpctypes.ErrGRPCEmptyKey)
}

func TestPutAcceptsAnyBytes(t *testing.T) {
	f := newFixture(t)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	f.put(string(all[:]), string(all[:]))
	kv := f.get(string(all[:])).Kvs[0]
	want(f, "key", string(kv.Key), string(all[:]))
	want(f, "value", string(kv.Value), string(all[:]))
	long := strings.Repeat("k", 100_000)
	f.put(long, "1")
	want(f, "long key", f.get(long).Count, 1)
}

func TestTooLargeRequestsAreRefused(t *testing.T) {
	f := newFixture(t)
	f.put("a", strings.Repeat("v", 1536<<10-512))
	_, err := f.client.Put(f.ctx, "a", strings.Repeat("v", 1536<<10+1))
	f.wantError(err, rpctypes.ErrRequestTooLarge)
	_, err = f.kv().Put(f.ctx, &pb.PutRequest{Key: []byte("a"), Value: make([]byte, 3<<20)})
	want(f, "code past the limit of a message", status.Code(err), codes.ResourceExhausted)
	want(f, "revision", f.revision(), 2)
}

func TestMaxRequestBytesFlag(t *testing.T) {
	f := newFixture(t, "--max-request-bytes", "10000")
	f.put("a", strings.Repeat("v", 9000))
	_, err := f.client.Put(f.ctx, "a", strings.Repeat("v", 11000))
	f.wantError(err, rpctypes.ErrRequestTooLarge)
}

func TestDeleteOneKeyAndRanges(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	r := f.delete("ab")
	want(f, "deleted", r.Deleted, 1)
	want(f, "revision", r.Header.Revision, 12)
	want(f, "previous keys that were not requested", len(r.PrevKvs), 0)
	r = f.delete("ab")
	want(f, "deleted again", r.Deleted, 0)
	want(f, "revision without a deletion", r.Header.Revision, 12)
	r = f.delete("a", clientv3.WithPrefix(), clientv3.WithPrevKV())
	want(f, "deleted", r.Deleted, 2)
	f.wantKeys(r.PrevKvs, "a abc")
	f.wantKV(r.PrevKvs[0], "a=m 2/9/2")
	want(f, "one revision", r.Header.Revision, 13)
	want(f, "empty range", f.delete("c", clientv3.WithRange("a")).Deleted, 0)
	want(f, "from key", f.delete("b\x00", clientv3.WithFromKey()).Deleted, 3)
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "b")
	want(f, "all", f.delete("", clientv3.WithPrefix()).Deleted, 1)
	want(f, "count", f.get("", clientv3.WithPrefix()).Count, 0)
}

func TestDeletedKeyStartsAgainAtVersionOne(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("a", "2")
	f.delete("a")
	f.put("a", "3")
	f.wantKV(f.get("a").Kvs[0], "a=3 5/5/1")
}

func TestManyClientsGetTheirOwnRevisions(t *testing.T) {
	f := newFixture(t)
	const clients, puts = 16, 100
	var lock sync.Mutex
	seen := map[int64]bool{}
	var all sync.WaitGroup
	for c := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range puts {
				r, err := f.client.Put(f.ctx, fmt.Sprintf("c%d", c), fmt.Sprint(i))
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				if seen[r.Header.Revision] {
					t.Errorf("revision %d was given twice", r.Header.Revision)
				}
				seen[r.Header.Revision] = true
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	want(f, "revision", f.revision(), 1+clients*puts)
	for c := range clients {
		want(f, "version", f.get(fmt.Sprintf("c%d", c)).Kvs[0].Version, puts)
	}
}
