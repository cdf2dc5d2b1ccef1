package watch

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

const growthMax = 64 // MB, with misbehaving clients

// scale is a factor for the load: VIGIL_WATCH_SCALE=50 means 1,000 watchers stopped over 100,000
// events, and a history of 3 GB.
func scale() int {
	if n, err := strconv.Atoi(os.Getenv("VIGIL_WATCH_SCALE")); err == nil && n > 0 {
		return n
	}
	return 1
}

func (f *fixture) wantGrowthBelow(before, limit float64, what string) {
	f.Helper()
	grown := f.settledMB() - before
	f.Logf("%s: %.1f MB more", what, grown)
	if grown > limit {
		f.Errorf("%s: the memory grew by %.1f MB", what, grown)
	}
}

// stopped opens streams with one watcher each that are not read.
func (f *fixture) stopped(connections, streams int) (calls []*call) {
	f.Helper()
	for range connections {
		conn := f.connect()
		for range streams {
			c := f.call(conn)
			c.create(prefixOf("p/", 0))
			calls = append(calls, c)
		}
	}
	return calls
}

// followAll reads many calls at once, and returns how many were canceled by a compaction.
func followAll(calls []*call, next, last int64) (canceled int) {
	var all sync.WaitGroup
	var compacted atomic.Int64
	for _, c := range calls {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, at := c.follow(0, next, last); at > 0 {
				compacted.Add(1)
			}
		}()
	}
	all.Wait()
	return int(compacted.Load())
}

// A thousand watchers whose clients stop reading cost little memory, delay no other client, and lose no
// event: later all of them are read to the end, every event once and in order.
func TestThousandStoppedWatchers(t *testing.T) {
	f := newFixture(t)
	f.fill("warm/", 2000, 100, 50)
	alone := time.Now()
	first := f.fill("warm/", 2000, 100, 50) + 1
	aloneTook := time.Since(alone)
	var calls []*lightCall
	for range 10 {
		conn := f.connect()
		for range 100 {
			calls = append(calls, f.light(conn, "p/", first))
		}
	}
	reader := f.call(f.connect())
	reader.create(prefixOf("p/", 0))

	before := f.settledMB()
	begin := time.Now()
	events := 2000 * scale()
	last := f.fill("p/", events, 100, 50)
	took := time.Since(begin)
	reader.follow(0, first, last)
	limit := float64(growthMax)
	if harness.IsEtcd(harness.Subject()) {
		limit = 1000 // etcd has a queue for each stream
	}
	f.wantGrowthBelow(before, limit, "1000 stopped streams")
	f.Logf("2000 puts took %v alone, %d took %v with them, and %v until a live watch had them all", aloneTook, events, took, time.Since(begin))
	if took > time.Duration(20*scale())*aloneTook+5*time.Second {
		f.Errorf("puts took %v instead of %v", took, aloneTook)
	}
	begin = time.Now()
	var all sync.WaitGroup
	var seen atomic.Int64
	for n, c := range calls {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := c.follow(last); err != nil {
				f.Errorf("watch %d: %v", n, err)
			}
			seen.Add(c.events)
		}()
	}
	all.Wait()
	f.Logf("%d events read back in %v", seen.Load(), time.Since(begin))
	if seen.Load() != int64(events)*int64(len(calls)) {
		f.Errorf("%d events were read back", seen.Load())
	}
	f.wantGrowthBelow(before, limit, "1000 streams that were read")
}

// When history is compacted, stopped watchers are canceled, and they get all events before that.
func TestStoppedWatchersAndACompaction(t *testing.T) {
	f := newFixture(t)
	calls := f.stopped(4, 25)
	last := f.fill("p/", 3000, 100, 300)
	f.compact(last)
	last = f.fill("p/", 100, 100, 300)
	canceled := followAll(calls, 2, last)
	f.Logf("%d of %d were canceled", canceled, len(calls))
	if canceled == 0 {
		f.Error("no watch was canceled, so the test shows nothing")
	}
}

// A compaction while many watches catch up: each is canceled, or has received everything.
func TestCompactionWhileManyCatchUp(t *testing.T) {
	f := newFixture(t)
	last := f.fill("p/", 5000, 100, 1000)
	var calls []*call
	for range 5 {
		conn := f.connect()
		for range 40 {
			c := f.call(conn)
			c.send(createOf(prefixOf("p/", 2)))
			calls = append(calls, c)
		}
	}
	f.compact(last - 10)
	canceled := followAll(calls, 2, last)
	f.Logf("%d of %d were canceled", canceled, len(calls))
}

// One stream reads a long history slowly; other watches, also on its connection, stay live.
func TestLiveWatchersStayLiveDuringALongCatchUp(t *testing.T) {
	f := newFixture(t)
	last := f.fill("p/", 3000*scale(), 50, 20000) // 60 MB
	conn := f.connect()
	behind := f.call(conn)
	behind.send(createOf(prefixOf("p/", 2)))
	var live []*call
	for n := range 100 {
		c := f.call(conn)
		if n%2 == 1 {
			c = f.call(f.conn)
		}
		c.create(prefixOf("live/", 0))
		live = append(live, c)
	}
	caughtUp := make(chan struct{})
	go func() {
		defer close(caughtUp)
		behind.follow(0, 2, last)
	}()
	var times []time.Duration
	during := 0
	for n := range 40 {
		begin := time.Now()
		f.put("live/a", fmt.Sprint(n))
		for _, c := range live {
			for len(c.next().Events) == 0 {
			}
		}
		times = append(times, time.Since(begin))
		select {
		case <-caughtUp:
		default:
			during++
		}
	}
	<-caughtUp
	f.Logf("%d of 40 puts while one watch caught up; all 100 received them after %v (median), %v at worst", during,
		quantile(times, 0.5), quantile(times, 1))
	if quantile(times, 0.9) > 3*time.Second {
		f.Error("live watches were late")
	}
}

// #15402: events were late behind large reads on the same connection.
func TestIssue15402EventsAreNotLateBehindLargeReads(t *testing.T) {
	f := newFixture(t)
	f.fill("big/", 100, 100, 50000) // 5 MB
	conn := f.connect()
	c := f.call(conn)
	c.create(prefixOf("p/", 0))
	ctx, stop := context.WithCancel(f.ctx)
	var readers sync.WaitGroup
	var reads atomic.Int64
	for range 10 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for ctx.Err() == nil {
				_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("big/"), RangeEnd: []byte("big0")})
				if err == nil {
					reads.Add(1)
				} else if ctx.Err() == nil {
					f.Error(err)
					return
				}
			}
		}()
	}
	var times []time.Duration
	for n := range 60 {
		begin := time.Now()
		f.put("p/a", fmt.Sprint(n))
		for len(c.next().Events) == 0 {
		}
		times = append(times, time.Since(begin))
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	readers.Wait()
	f.Logf("%d reads of 5 MB; events came after %v (median), %v at worst", reads.Load(),
		quantile(times, 0.5), quantile(times, 1))
	if quantile(times, 0.9) > 2*time.Second {
		f.Error("events are late behind reads")
	}
}

// Watches are created and canceled repeatedly: every request is answered in order, and nothing is left behind.
func TestCreatingAndCancelingRepeatedly(t *testing.T) {
	f := newFixture(t)
	const rounds = 20000
	c := f.call(f.connect())
	c.create(prefixOf("p/", 0)) // watch 0 stays
	before := f.settledMB()
	sent := make(chan error, 1)
	go func() {
		for n := range rounds {
			q := prefixOf(fmt.Sprintf("p/%d", n%100), 0)
			q.WatchId = 1 + int64(n%50)
			err := c.Send(createOf(q))
			if err == nil {
				err = c.Send(cancelOf(q.WatchId))
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for n := range rounds {
		id := 1 + int64(n%50)
		created, canceled := c.next(), c.next()
		if !created.Created || created.Canceled || created.WatchId != id || !canceled.Canceled || canceled.WatchId != id {
			f.Fatalf("round %d was answered with %v, %v", n, created, canceled)
		}
	}
	f.must(<-sent)
	f.wantGrowthBelow(before, growthMax, "20,000 creates and cancels")
	revision := f.put("p/0", "v")
	c.follow(0, revision, revision)
}

// Closed streams leave nothing behind, and streams beyond the limit wait or are refused.
func TestOpeningStreamsRepeatedly(t *testing.T) {
	f := newFixture(t)
	conn := f.connect()
	open := func(count int) {
		for range count {
			c := f.call(conn)
			c.create(prefixOf("p/", 0))
			c.cancel()
		}
	}
	open(200)
	before := f.settledMB()
	open(3000)
	f.wantGrowthBelow(before, growthMax, "3000 streams, one after another")

	ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
	defer cancel()
	var opened, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 750 {
				stream, err := pb.NewWatchClient(conn).Watch(ctx)
				if err == nil {
					err = stream.Send(createOf(prefixOf("p/", 0)))
				}
				if err == nil {
					_, err = stream.Recv()
				}
				switch status.Code(err) {
				case codes.OK:
					opened.Add(1)
				case codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unavailable:
					refused.Add(1)
				default:
					f.Errorf("opening a stream: %v", err)
				}
			}
		}()
	}
	all.Wait()
	f.Logf("of 3000 streams at once on one connection %d were served, %d not", opened.Load(), refused.Load())
	f.wantGrowthBelow(before, 2*growthMax, "3000 streams at once")
	f.put("p/a", "v")
}

// Progress is requested without reading the answers: the server limits what it accepts.
func TestProgressRequestsWithoutPause(t *testing.T) {
	f := newFixture(t)
	c := f.call(f.connect())
	c.create(prefixOf("p/", 0))
	before := f.settledMB()
	var sent atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for range 200000 {
			if err := c.Send(progressOf()); err != nil {
				ended <- err
				return
			}
			sent.Add(1)
		}
		ended <- nil
	}()
	for last := int64(-1); last != sent.Load(); time.Sleep(300 * time.Millisecond) {
		last = sent.Load()
	}
	f.wantGrowthBelow(before, growthMax, fmt.Sprintf("%d requests for progress, unread", sent.Load()))
	revision := f.put("p/a", "v")
	// Now the answers are read, and the event comes among or after them, or the call has ended with a
	// reason.
	for {
		answer, err := c.Recv()
		if err != nil {
			if status.Code(err) != codes.ResourceExhausted {
				f.Errorf("the call ended: %v", err)
			}
			break
		}
		if len(answer.Events) > 0 && answer.Events[0].Kv.ModRevision == revision {
			break
		}
	}
	c.cancel()
	<-ended
}

// Connections are cut in the middle of fragments: complete responses count, and the rest is sent
// again.
func TestConnectionsCutInTheMiddleOfAFragment(t *testing.T) {
	f := newFixture(t)
	value := strings.Repeat("v", 50000)
	const revisions, keys = 12, 25
	for n := range revisions {
		txn := &pb.TxnRequest{}
		for key := range keys {
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{
				Key: []byte(keyName(key)), Value: fmt.Appendf(nil, "%d:%d:%s", n, key, value)}}})
		}
		_, err := f.kv.Txn(f.ctx, txn)
		f.must(err)
	}
	p, err := harness.NewCuttingRelay(f.server.Addr, SeedOf(t), 3<<20)
	f.must(err)
	defer p.Close()
	conn, err := dial(p.Addr)
	f.must(err)
	defer conn.Close()
	w := &Session{TB: f.T, random: rand.New(rand.NewSource(1))}
	s := w.stream("cut", Place{Etcd: harness.IsEtcd(harness.Subject())}, conn)
	request := Request{Key: "k/", End: "k0", Start: 2, Prev: true}
	s.add(request)
	s.watch[0].fragment = true
	ctx, cancel := context.WithCancel(f.ctx)
	w.done.Add(1)
	go s.run(ctx)
	for deadline := time.Now().Add(settleLimit); s.watch[0].seen() <= revisions && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		if p.Cuts() > 40 {
			p.Settle()
		}
	}
	cancel()
	w.done.Wait()
	w.truth = s
	truth := w.history()
	for _, fault := range Check(truth, Rules{}, &s.watch[0].recording) {
		f.Errorf("not %s: %s", fault.Guarantee, fault.Text)
	}
	if len(truth.Wanted(&request, 2, 1000)) != revisions*keys {
		f.Errorf("%d events arrived", len(truth.Wanted(&request, 2, 1000)))
	}
	for _, failure := range w.failures {
		f.Error(failure)
	}
	f.Logf("%d fragments, %d cuts, %d legs", s.fragments, p.Cuts(), len(s.watch[0].recording.Legs))
	if s.fragments == 0 || p.Cuts() == 0 {
		f.Error("nothing was fragmented, or nothing was cut, so the test shows nothing")
	}
}
