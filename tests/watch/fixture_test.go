package watch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"vigil/tests/harness"
)

const testLimit = 5 * time.Minute

// fixture is one server and one connection to it.
type fixture struct {
	*testing.T
	server *harness.Server
	conn   *grpc.ClientConn
	kv     pb.KVClient
	ctx    context.Context
}

func onlyVigil(t *testing.T, why string) {
	t.Helper()
	if harness.IsEtcd(harness.Subject()) {
		t.Skip("etcd: " + why)
	}
}

func newFixture(t *testing.T, args ...string) *fixture {
	t.Helper()
	// A small quarantine of the address sanitizer, so that freed memory is soon reused and growth is real.
	t.Setenv("ASAN_OPTIONS", os.Getenv("ASAN_OPTIONS")+":quarantine_size_mb=1:malloc_context_size=2")
	f := &fixture{T: t, server: harness.Start(t, harness.Options{Args: args, Port: harness.FreePort(), Fast: true})}
	f.reconnect()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit*time.Duration(scale()))
	t.Cleanup(cancel)
	f.ctx = ctx
	return f
}

func (f *fixture) reconnect() {
	f.conn = f.connect()
	f.kv = pb.NewKVClient(f.conn)
}

func (f *fixture) connect() *grpc.ClientConn {
	f.Helper()
	conn, err := dial(f.server.Addr)
	f.must(err)
	f.Cleanup(func() { conn.Close() })
	return conn
}

// restart stops the server cleanly and starts it again on its data.
func (f *fixture) restart() {
	f.Helper()
	f.must(f.server.Stop())
	options := f.server.Options
	f.server = harness.Start(f.T, options)
	f.reconnect()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) put(key, value string) int64 {
	f.Helper()
	answer, err := f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value)})
	f.must(err)
	return answer.Header.Revision
}

func (f *fixture) delete(key string) int64 {
	f.Helper()
	answer, err := f.kv.DeleteRange(f.ctx, &pb.DeleteRangeRequest{Key: []byte(key)})
	f.must(err)
	return answer.Header.Revision
}

func (f *fixture) compact(revision int64) {
	f.Helper()
	_, err := f.kv.Compact(f.ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	f.must(err)
}

// fill puts values under a prefix, with many requests in flight, and returns the last revision.
func (f *fixture) fill(prefix string, count, keys, valueBytes int) int64 {
	f.Helper()
	value := []byte(strings.Repeat("v", valueBytes))
	type result struct {
		revision int64
		err      error
	}
	const workers = 8
	results := make(chan result, workers)
	for worker := range workers {
		go func() {
			var last result
			for n := worker; n < count && last.err == nil; n += workers {
				key := fmt.Sprintf("%s%06d", prefix, n%keys)
				var answer *pb.PutResponse
				answer, last.err = f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte(key), Value: value})
				last.revision = max(last.revision, answer.GetHeader().GetRevision())
			}
			results <- last
		}()
	}
	var last int64
	for range workers {
		one := <-results
		f.must(one.err)
		last = max(last, one.revision)
	}
	return last
}

// anonymousMB is the server's anonymous memory.
func (f *fixture) anonymousMB() float64 {
	f.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.server.Pid()))
	f.must(err)
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "RssAnon:" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			f.must(err)
			return kb / 1024
		}
	}
	f.Fatal("no RssAnon")
	return 0
}

// settledMB waits until the memory does not decrease any more, because freed memory may be returned later.
func (f *fixture) settledMB() float64 {
	now := f.anonymousMB()
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		next := f.anonymousMB()
		if next > now-0.5 {
			return next
		}
		now = next
	}
	return now
}

// call is a Watch call that reads only when next is called.
type call struct {
	*fixture
	pb.Watch_WatchClient
	cancel context.CancelFunc
}

func (f *fixture) call(conn *grpc.ClientConn) *call {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	f.must(err)
	return &call{f, stream, cancel}
}

func createOf(q *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: q}}
}

func cancelOf(id int64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
}

func progressOf() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
		ProgressRequest: &pb.WatchProgressRequest{}}}
}

func (c *call) send(q *pb.WatchRequest) {
	c.Helper()
	c.must(c.Send(q))
}

func (c *call) next() *pb.WatchResponse {
	c.Helper()
	answer, err := c.Recv()
	c.must(err)
	return answer
}

// create creates a watch and reads the answer, which must come first.
func (c *call) create(q *pb.WatchCreateRequest) int64 {
	c.Helper()
	c.send(createOf(q))
	answer := c.next()
	if !answer.Created || answer.Canceled {
		c.Fatalf("not created: %v", answer)
	}
	return answer.WatchId
}

// follow reads the events of one watch from `next` up to `last`, each once and in order, where every
// revision has one event. A compaction ends it early. It returns the next revision, and the revision
// of the compaction or 0.
func (c *call) follow(id, next, last int64) (int64, int64) {
	c.Helper()
	for next <= last {
		answer := c.next()
		if answer.WatchId != id || answer.Created {
			continue
		}
		if answer.Canceled {
			return next, answer.CompactRevision
		}
		for _, event := range answer.Events {
			if event.Kv.ModRevision != next {
				c.Fatalf("watch %d: %d came where %d should have", id, event.Kv.ModRevision, next)
			}
			next++
		}
	}
	return next, 0
}

func prefixOf(prefix string, start int64) *pb.WatchCreateRequest {
	return &pb.WatchCreateRequest{Key: []byte(prefix), RangeEnd: []byte(prefix + "\xff"), StartRevision: start}
}

// quantile returns a quantile of the durations.
func quantile(times []time.Duration, fraction float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(fraction*float64(len(sorted))))]
}
