package cluster

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// metric is the sum of a counter of the front.
func (f *fixture) metric(name string) (sum int64) {
	f.Helper()
	answer, err := http.Get(f.front.URL + "/metrics")
	f.must(err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			number, err := strconv.ParseFloat(value, 64)
			f.must(err)
			sum += int64(number)
		}
	}
	f.must(lines.Err())
	return sum
}

// counter is a key that a writer raises. What was acknowledged before a read began must be in it.
type counter struct {
	key          string
	acknowledged atomic.Int64
}

func (f *fixture) raise(c *counter, client *clientv3.Client, stop <-chan struct{}) {
	for n := int64(1); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := client.Put(f.ctx, c.key, fmt.Sprint(n)); err != nil {
			f.Error(err)
			return
		}
		c.acknowledged.Store(n)
	}
}

func (f *fixture) read(c *counter, client *clientv3.Client, options ...clientv3.OpOption) {
	before := c.acknowledged.Load()
	answer, err := client.Get(f.ctx, c.key, options...)
	if err != nil {
		f.Error(err)
		return
	}
	var value int64
	if len(answer.Kvs) > 0 {
		value, _ = strconv.ParseInt(string(answer.Kvs[0].Value), 10, 64)
	}
	if value < before {
		f.Errorf("%s: a read that began after %d was acknowledged returned %d", c.key, before, value)
	}
}

// Linearizable reads through the front contain every write that was acknowledged before they began,
// whichever member acknowledged it. Serializable ones contain the writes made through the front.
func TestReadsAreNotStale(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		stop := make(chan struct{})
		var writers, readers sync.WaitGroup
		counters := make([]*counter, len(f.cluster.Members)+1)
		for n := range counters {
			client := f.via
			if n < len(f.cluster.Members) {
				client = f.client(f.cluster.Members[n].URL)
			}
			counters[n] = &counter{key: fmt.Sprintf("counter/%d", n)}
			writers.Add(1)
			go func() {
				defer writers.Done()
				f.raise(counters[n], client, stop)
			}()
		}
		for n := range 16 {
			readers.Add(1)
			go func() {
				defer readers.Done()
				for range 150 {
					f.read(counters[n%len(counters)], f.via)
					f.read(counters[len(counters)-1], f.via, clientv3.WithSerializable())
				}
			}()
		}
		readers.Wait()
		close(stop)
		writers.Wait()
		if harness.IsVigil() && f.metric("vigil_cluster_reads_mirrored_total") == 0 {
			t.Error("no read was answered from the mirror")
		}
	})
}

// Reads that are in flight together share the questions for the cluster's newest revision.
func TestManyReadsCostFewProbes(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("only Vigil asks for the newest revision")
	}
	onEach(t, func(t *testing.T, binary string) {
		const count, inFlight = 20000, 2000
		f := newPlain(t, binary)
		f.put(f.direct, "k", "v")
		f.read(&counter{key: "k"}, f.via)
		before := f.metric("vigil_cluster_probes_total")
		var all sync.WaitGroup
		for range inFlight {
			all.Add(1)
			go func() {
				defer all.Done()
				for range count / inFlight {
					f.read(&counter{key: "k"}, f.via)
				}
			}()
		}
		all.Wait()
		probes := f.metric("vigil_cluster_probes_total") - before
		t.Logf("%d reads, %d probes, %d forwarded", count, probes, f.metric("vigil_cluster_reads_forwarded_total"))
		if probes > count/10 {
			t.Errorf("%d reads have cost %d probes", count, probes)
		}
	})
}

// A watch without a user ends when authentication is enabled; one with a token continues.
func TestWatchesWithoutAUserEndWhenAuthenticationIsEnabled(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("etcd does not check running watches")
	}
	onEach(t, func(t *testing.T, binary string) {
		f := authFixture(t, binary)
		nameless := f.via.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		<-nameless
		started := time.Now()
		f.enable()
		f.last(nameless)
		t.Logf("the watch ended after %v", time.Since(started))
		anna := f.clientAs("anna", "annapw", f.front.URL)
		hers := anna.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		<-hers
		revision := f.put(anna, "a/1", "1")
		f.follow(hers, revision, revision)
	})
}

// A front that starts with the mirror of its last run answers with the ids of its cluster.
func TestHeadersAfterAWarmStart(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		f.put(f.via, "k", "v")
		f.front.Stop()
		f.front.Start()
		f.awaitSync(f.via)
		via, err := f.via.Get(f.ctx, "k")
		f.must(err)
		direct, err := f.direct.Get(f.ctx, "k")
		f.must(err)
		f.wantSame("cluster id", via.Header.ClusterId, direct.Header.ClusterId)
		f.wantSame("term", via.Header.RaftTerm, direct.Header.RaftTerm)
		f.wantSame("revision", via.Header.Revision, direct.Header.Revision)
	})
}

// A compaction that a member has acknowledged is known to the front at once, although nothing tells
// it: a linearizable read below it is refused.
func TestCompactionElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newFixture(t, harness.ClusterOptions{Binary: binary, Size: 1}, harness.FrontOptions{})
		for n := range 20 {
			var last int64
			for range 3 {
				last = f.put(f.direct, "k", fmt.Sprint(n))
			}
			_, err := f.via.Get(f.ctx, "k")
			f.must(err)
			_, err = f.direct.Compact(f.ctx, last)
			f.must(err)
			if answer, err := f.via.Get(f.ctx, "k", clientv3.WithRev(last-1)); err != rpctypes.ErrCompacted {
				t.Fatalf("round %d: a read at %d after a compaction to %d: %v %v", n, last-1, last, answer, err)
			}
			_, err = f.via.Get(f.ctx, "k", clientv3.WithRev(last))
			f.must(err)
		}
	})
}

// A watch that is created after a write was acknowledged here shows a revision that is not older.
func TestCreatedIsNotOlderThanAWrite(t *testing.T) {
	for name, args := range map[string][]string{"all keys": nil, "prefix": {"--upstream-prefix", "other/"}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, binary string) {
				f := newFixture(t, harness.ClusterOptions{Binary: binary}, harness.FrontOptions{Args: args})
				for n := range 60 {
					var last int64
					for range 3 {
						last = f.put(f.via, "k", fmt.Sprint(n))
					}
					start := []int64{0, last - 2, last + 1}[n%3]
					stream, err := pb.NewWatchClient(f.dial(f.front.Addr)).Watch(f.ctx)
					f.must(err)
					f.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
						CreateRequest: &pb.WatchCreateRequest{Key: []byte("zz"), StartRevision: start}}}))
					answer, err := stream.Recv()
					f.must(err)
					if !answer.Created || answer.Header.Revision < last {
						t.Fatalf("a watch from %d was created at %d, after a write at %d", start, answer.Header.Revision, last)
					}
					f.must(stream.CloseSend())
				}
			})
		})
	}
}
