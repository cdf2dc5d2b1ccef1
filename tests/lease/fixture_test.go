// Package lease tests large numbers of leases, their cost, many that expire at once, and past faults
// of etcd.
package lease

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"vigil/tests/harness"
)

const testLimit = 2 * time.Minute

// fixture is one server and one connection to it, without a client's retries.
type fixture struct {
	*testing.T
	server *harness.Server
	ctx    context.Context
	kv     pb.KVClient
	lease  pb.LeaseClient
	watch  pb.WatchClient
}

func newFixture(t *testing.T, args ...string) *fixture {
	t.Helper()
	return connect(t, harness.Start(t, harness.Options{Args: args}))
}

func connect(t *testing.T, server *harness.Server) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	conn, err := grpc.NewClient("passthrough:///"+server.Addr, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &fixture{t, server, ctx, pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewWatchClient(conn)}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) put(key string, lease int64) int64 {
	f.Helper()
	r, err := f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("v"), Lease: lease})
	f.must(err)
	return r.Header.Revision
}

func (f *fixture) grant(id, ttl int64) {
	f.Helper()
	_, err := f.lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
	f.must(err)
}

// count returns the number of keys with a prefix; "" counts all.
func (f *fixture) count(prefix string) int64 {
	f.Helper()
	request := &pb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(prefix + "\xff"), CountOnly: true}
	if prefix == "" {
		request.Key, request.RangeEnd = []byte{0}, []byte{0}
	}
	r, err := f.kv.Range(f.ctx, request)
	f.must(err)
	return r.Count
}

func (f *fixture) leases() int {
	f.Helper()
	r, err := f.lease.LeaseLeases(f.ctx, &pb.LeaseLeasesRequest{})
	f.must(err)
	return len(r.Leases)
}

// each calls work for 1 to n, many at a time.
func (f *fixture) each(n int64, work func(i int64) error) {
	f.Helper()
	const atOnce = 512
	var next atomic.Int64
	var all sync.WaitGroup
	failure := make(chan error, atOnce)
	for range atOnce {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := next.Add(1); i <= n; i = next.Add(1) {
				if err := work(i); err != nil {
					failure <- err
					return
				}
			}
		}()
	}
	all.Wait()
	select {
	case err := <-failure:
		f.Fatal(err)
	default:
	}
}

func (f *fixture) grantMany(n, ttl int64) {
	f.Helper()
	f.each(n, func(i int64) error {
		_, err := f.lease.LeaseGrant(f.ctx, &pb.LeaseGrantRequest{ID: i, TTL: ttl})
		return err
	})
}

// residentBytes is the server's anonymous memory.
func (f *fixture) residentBytes() int64 {
	f.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.server.Pid()))
	f.must(err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "RssAnon:" {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			f.must(err)
			return kb << 10
		}
	}
	f.Fatal("no RssAnon")
	return 0
}

func onlyVigil(t *testing.T) {
	if harness.IsEtcd(harness.Subject()) {
		t.Skip("not a property of etcd")
	}
}
