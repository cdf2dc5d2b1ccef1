package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"vigil/tests/harness"
)

const testLimit = 60 * time.Second

// apiserver is the state that the clients of one kube-apiserver share.
type apiserver struct {
	*testing.T
	server   *harness.Server
	ctx      context.Context
	wire     wire
	statuses atomic.Int64 // status calls made
}

func newApiserver(t *testing.T) *apiserver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	return &apiserver{T: t, server: harness.Start(t, harness.Options{}), ctx: ctx}
}

// client is configured as in storagebackend/factory. Kubernetes pings every 30 s; 10 s is the minimum of
// grpc-go, and harder on a server.
func (a *apiserver) client() *kubernetes.Client {
	a.Helper()
	client, err := kubernetes.New(clientv3.Config{
		Endpoints: []string{a.server.URL}, Logger: zap.NewNop(),
		DialTimeout: 20 * time.Second, DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithContextDialer(a.wire.dial)},
	})
	a.must(err)
	a.Cleanup(func() { client.Close() })
	return client
}

func (a *apiserver) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *apiserver) create(c *kubernetes.Client, key, value string) int64 {
	a.Helper()
	put, err := c.Kubernetes.OptimisticPut(a.ctx, key, []byte(value), 0, kubernetes.PutOptions{})
	a.must(err)
	if !put.Succeeded {
		a.Fatalf("%s was not created", key)
	}
	return put.Revision
}

// Row 17: the version decides which features a kube-apiserver uses.
func TestStatusAllowsProgressRequests(t *testing.T) {
	a := newApiserver(t)
	c := a.client()
	status, err := c.Status(a.ctx, a.server.URL)
	a.must(err)
	var major, minor, patch int
	if n, err := fmt.Sscanf(status.Version, "%d.%d.%d", &major, &minor, &patch); n != 3 || err != nil {
		t.Fatalf("version %q is not a semantic version", status.Version)
	}
	if major != 3 || minor < 6 {
		t.Errorf("version %s: progress requests and streamed ranges would not be used", status.Version)
	}
	if status.DbSize <= 0 || status.Leader != status.Header.MemberId {
		t.Errorf("status %+v", status)
	}
}

// Rows 1 and 6.
func TestGet(t *testing.T) {
	a := newApiserver(t)
	c := a.client()
	first := a.create(c, "/registry/pods/default/a", "1")
	second, err := c.Kubernetes.OptimisticPut(a.ctx, "/registry/pods/default/a", []byte("2"), first,
		kubernetes.PutOptions{GetOnFailure: true})
	a.must(err)

	for _, row := range []struct {
		at    int64
		value string
	}{{0, "2"}, {first, "1"}, {second.Revision, "2"}} {
		got, err := c.Kubernetes.Get(a.ctx, "/registry/pods/default/a", kubernetes.GetOptions{Revision: row.at})
		a.must(err)
		if string(got.KV.Value) != row.value || got.Revision != second.Revision {
			t.Errorf("at %d: %q, header %d; want %q, %d", row.at, got.KV.Value, got.Revision, row.value,
				second.Revision)
		}
	}
	for _, absent := range []string{"/registry/pods", "/registry/health"} {
		got, err := c.Kubernetes.Get(a.ctx, absent, kubernetes.GetOptions{})
		a.must(err)
		if got.KV != nil || got.Revision != second.Revision {
			t.Errorf("%s: %v at %d", absent, got.KV, got.Revision)
		}
	}
	_, err = c.Kubernetes.Get(a.ctx, "/registry/pods", kubernetes.GetOptions{Revision: second.Revision + 100})
	if !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("a future revision: %v", err)
	}
}

// Rows 7, 8 and 9, with success and failure, with and without a range on failure.
func TestOptimisticWrites(t *testing.T) {
	a := newApiserver(t)
	c := a.client()
	const key = "/registry/configmaps/default/a"
	created := a.create(c, key, "1")

	again, err := c.Kubernetes.OptimisticPut(a.ctx, key, []byte("x"), 0, kubernetes.PutOptions{})
	a.must(err)
	if again.Succeeded || again.KV != nil || again.Revision != created {
		t.Errorf("created twice: %+v", again)
	}
	lost, err := c.Kubernetes.OptimisticPut(a.ctx, key, []byte("x"), created-1,
		kubernetes.PutOptions{GetOnFailure: true})
	a.must(err)
	if lost.Succeeded || lost.KV == nil || lost.KV.ModRevision != created || string(lost.KV.Value) != "1" {
		t.Errorf("update with an old revision: %+v", lost)
	}
	won, err := c.Kubernetes.OptimisticPut(a.ctx, key, []byte("2"), created,
		kubernetes.PutOptions{GetOnFailure: true})
	a.must(err)
	if !won.Succeeded || won.Revision != created+1 {
		t.Errorf("update: %+v", won)
	}
	kept, err := c.Kubernetes.OptimisticDelete(a.ctx, key, created, kubernetes.DeleteOptions{GetOnFailure: true})
	a.must(err)
	if kept.Succeeded || kept.KV == nil || kept.KV.ModRevision != won.Revision || kept.KV.Version != 2 {
		t.Errorf("delete with an old revision: %+v", kept)
	}
	gone, err := c.Kubernetes.OptimisticDelete(a.ctx, key, won.Revision, kubernetes.DeleteOptions{GetOnFailure: true})
	a.must(err)
	if !gone.Succeeded || gone.Revision != won.Revision+1 {
		t.Errorf("delete: %+v", gone)
	}
	missing, err := c.Kubernetes.OptimisticDelete(a.ctx, key, won.Revision, kubernetes.DeleteOptions{GetOnFailure: true})
	a.must(err)
	if missing.Succeeded || missing.KV != nil || missing.Revision != gone.Revision {
		t.Errorf("delete of nothing: %+v", missing)
	}
}

// Rows 2, 3, 4 and 5: pages at one revision while others write, a stream, counts, keys.
func TestLists(t *testing.T) {
	a := newApiserver(t)
	c := a.client()
	const prefix, total, page = "/registry/pods/", 1203, 250
	value := bytes.Repeat([]byte("k8s\x00"), 500)
	var last int64
	for i := range total {
		last = a.create(c, fmt.Sprintf("%sns-%d/pod-%05d", prefix, i%7, i), string(value))
	}

	var seen, pages int
	options := kubernetes.ListOptions{Limit: page}
	for more := true; more; pages++ {
		got, err := c.Kubernetes.List(a.ctx, prefix, options)
		a.must(err)
		// The first page's revision is that of the list; count is the number of objects from the continuation on.
		if pages == 0 {
			options.Revision = got.Revision
		}
		if got.Count != int64(total-seen) {
			t.Fatalf("page %d: count %d, want %d", pages, got.Count, total-seen)
		}
		for _, kv := range got.Kvs {
			if kv.ModRevision > options.Revision || !bytes.Equal(kv.Value, value) {
				t.Fatalf("%s at %d in a list of %d", kv.Key, kv.ModRevision, options.Revision)
			}
		}
		seen += len(got.Kvs)
		more = int64(len(got.Kvs)) < got.Count
		options.Continue = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		a.create(c, fmt.Sprintf("%sns-9/late-%d", prefix, pages), "x")
	}
	if seen != total || options.Revision != last || pages != (total+page-1)/page {
		t.Errorf("%d objects of revision %d in %d pages", seen, options.Revision, pages)
	}

	for _, at := range []int64{0, last} {
		stream, err := c.KV.GetStream(a.ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(at))
		a.must(err)
		whole, err := clientv3.GetStreamToGetResponse(stream)
		a.must(err)
		wanted := total
		if at == 0 {
			wanted += pages
		}
		// The header of a stream at an older revision has the newest revision, too.
		if len(whole.Kvs) != wanted || whole.Count != int64(wanted) || whole.Header.Revision != last+int64(pages) {
			t.Errorf("stream at %d: %d objects, count %d, revision %d", at, len(whole.Kvs), whole.Count,
				whole.Header.Revision)
		}
	}
	count, err := c.Kubernetes.Count(a.ctx, prefix, kubernetes.CountOptions{})
	a.must(err)
	keys, err := c.KV.Get(a.ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	a.must(err)
	if count != int64(total+pages) || int64(len(keys.Kvs)) != count || len(keys.Kvs[0].Value) != 0 {
		t.Errorf("count %d, keys %d", count, len(keys.Kvs))
	}
}

// compact is one round of a kube-apiserver's compactor, rows 10 and 11: the one that finds the version of
// compact_rev_key unchanged writes the newest revision there and compacts the revision of the previous round.
func (a *apiserver) compact(c *kubernetes.Client, version, revision int64) (int64, int64, bool) {
	a.Helper()
	answer, err := c.KV.Txn(a.ctx).If(
		clientv3.Compare(clientv3.Version("compact_rev_key"), "=", version),
	).Then(
		clientv3.OpPut("compact_rev_key", fmt.Sprint(revision)),
	).Else(
		clientv3.OpGet("compact_rev_key"),
	).Commit()
	a.must(err)
	newest := answer.Header.Revision
	if !answer.Succeeded {
		found := answer.Responses[0].GetResponseRange()
		return found.Kvs[0].Version, newest, false
	}
	if revision != 0 {
		_, err = c.Compact(a.ctx, revision)
		a.must(err)
	}
	return version + 1, newest, true
}

func TestCompactor(t *testing.T) {
	a := newApiserver(t)
	ours, others := a.client(), a.client()
	first := a.create(ours, "/registry/pods/default/a", "1")

	// Row 14: every apiserver watches the key that the winner writes.
	watch := others.Watch(a.ctx, "compact_rev_key", clientv3.WithRev(first))
	version, revision, won := a.compact(ours, 0, 0)
	if !won || version != 1 || revision != first+1 {
		t.Fatalf("first round: version %d, revision %d, won %v", version, revision, won)
	}
	if v, r, won := a.compact(others, 0, 0); won || v != 1 || r != revision {
		t.Errorf("the other one: version %d, revision %d, won %v", v, r, won)
	}
	wantNext := func(value string) {
		t.Helper()
		response := <-watch
		a.must(response.Err())
		if got := string(response.Events[0].Kv.Value); got != value {
			t.Errorf("compactor's watch: %q, want %q", got, value)
		}
	}
	wantNext("0")
	latest := a.create(ours, "/registry/pods/default/b", "1")
	if v, _, won := a.compact(ours, version, revision); !won || v != 2 {
		t.Errorf("second round: version %d, won %v", v, won)
	}
	wantNext(fmt.Sprint(revision))

	_, err := ours.Kubernetes.List(a.ctx, "/registry/pods/", kubernetes.ListOptions{Revision: first})
	if !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("list of a compacted revision: %v", err)
	}
	at, err := ours.Kubernetes.List(a.ctx, "/registry/pods/", kubernetes.ListOptions{Revision: latest})
	a.must(err)
	if len(at.Kvs) != 2 {
		t.Errorf("list after the compaction: %v", at.Kvs)
	}
	old := ours.Watch(clientv3.WithRequireLeader(a.ctx), "/registry/pods/", clientv3.WithPrefix(),
		clientv3.WithRev(first), clientv3.WithPrevKV())
	if response := <-old; !errors.Is(response.Err(), rpctypes.ErrCompacted) || response.CompactRevision != revision {
		t.Errorf("watch of a compacted revision: %v, compacted at %d", response.Err(), response.CompactRevision)
	}
}

// Row 16: many events are attached to one lease that is not renewed; master leases are granted again each time.
func TestLeases(t *testing.T) {
	a := newApiserver(t)
	c := a.client()
	hour, err := c.Grant(a.ctx, 3660)
	a.must(err)
	short, err := c.Grant(a.ctx, 2)
	a.must(err)
	if hour.TTL != 3660 || short.TTL != 2 || hour.ID == short.ID {
		t.Errorf("granted %v and %v", hour, short)
	}
	put := func(key string, lease clientv3.LeaseID, at int64) int64 {
		t.Helper()
		answer, err := c.Kubernetes.OptimisticPut(a.ctx, key, []byte("event"), at, kubernetes.PutOptions{LeaseID: lease})
		a.must(err)
		if !answer.Succeeded {
			t.Fatalf("%s was not put", key)
		}
		return answer.Revision
	}
	watch := c.Watch(clientv3.WithRequireLeader(a.ctx), "/registry/", clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(1))
	for i := range 20 {
		put(fmt.Sprintf("/registry/events/default/short-%02d", i), short.ID, 0)
	}
	put("/registry/events/default/hour", hour.ID, 0)
	master := put("/registry/masterleases/10.0.0.1", short.ID, 0)
	last := put("/registry/masterleases/10.0.0.1", hour.ID, master)

	// All keys that are still attached to the lease are deleted in one revision, with their previous versions.
	var deleted int
	for deleted == 0 {
		response := <-watch
		a.must(response.Err())
		for _, event := range response.Events {
			if event.Type != clientv3.EventTypeDelete {
				continue
			}
			deleted++
			if event.Kv.ModRevision != last+1 || event.PrevKv == nil || string(event.PrevKv.Value) != "event" ||
				event.PrevKv.Lease != int64(short.ID) {
				t.Errorf("expired: %v", event)
			}
		}
	}
	if deleted != 20 {
		t.Errorf("%d keys expired in one revision", deleted)
	}
	if _, err := c.Kubernetes.OptimisticPut(a.ctx, "/registry/events/default/late", nil, 0,
		kubernetes.PutOptions{LeaseID: short.ID}); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("put on an expired lease: %v", err)
	}
}
