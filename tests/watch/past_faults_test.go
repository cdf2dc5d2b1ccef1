package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Past faults of etcd by the number of the issue; etcd still has some of them.

// #15220: a progress mark named a revision whose events had not been sent yet.
func TestIssue15220MarksDoNotOvertakeEvents(t *testing.T) {
	f := newFixture(t)
	c := f.call(f.conn)
	c.create(prefixOf("p/", 0))
	const puts = 2000
	done := make(chan error, 1)
	go func() {
		for n := range puts {
			if n%3 == 0 {
				if err := c.Send(progressOf()); err != nil {
					done <- err
					return
				}
			}
			_, err := f.kv.Put(f.ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "p/%d", n), Value: []byte("v")})
			if err != nil {
				done <- err
				return
			}
		}
		done <- c.Send(progressOf())
	}()
	var marked int64
	marks := 0
	for next := int64(2); next < puts+2 || marked < puts+1; {
		answer := c.next()
		if len(answer.Events) == 0 {
			if answer.Header.Revision >= next || answer.Header.Revision < marked {
				f.Fatalf("a mark at %d, but %d is next and %d was marked", answer.Header.Revision, next, marked)
			}
			marked = answer.Header.Revision
			marks++
		}
		for _, event := range answer.Events {
			if event.Kv.ModRevision != next {
				f.Fatalf("%d came where %d should have", event.Kv.ModRevision, next)
			}
			next++
		}
	}
	f.must(<-done)
	f.Logf("%d marks", marks)
}

// #15271: a watcher that had been slow received events twice.
func TestIssue15271SlowWatcherGetsNoEventTwice(t *testing.T) {
	f := newFixture(t)
	c := f.call(f.connect())
	id := c.create(prefixOf("p/", 0))
	next := int64(2)
	for range 5 {
		last := f.fill("p/", 1000, 100, 1000) // far more than windows and buffers hold
		next, _ = c.follow(id, next, last)
		for range 20 {
			last = f.put("p/live", "v")
			next, _ = c.follow(id, next, last)
		}
	}
}

// #16839: queues of unread streams filled the memory.
func TestIssue16839UnreadStreamsDoNotFillMemory(t *testing.T) {
	onlyVigil(t, "it queues 128 responses for each stream")
	f := newFixture(t)
	var calls []*call
	for range 4 {
		conn := f.connect()
		for range 50 {
			c := f.call(conn)
			c.create(prefixOf("p/", 0))
			calls = append(calls, c)
		}
	}
	f.fill("warm/", 100, 100, 30000)
	before := f.settledMB()
	last := f.fill("p/", 400, 20, 30000) // 12 MB to each of 200
	grown := f.settledMB() - before
	f.Logf("%d streams, 12 MB to each: %.1f MB more", len(calls), grown)
	if grown > 100 {
		f.Errorf("the memory grew by %.1f MB", grown)
	}
	calls[7].follow(0, last-399, last)
}

// #17247: a watch that read history while it was being written received events twice, because the
// buffer of pending writes, from which they were read, contained some of them twice.
func TestIssue17247EventsReadDuringWritesComeOnce(t *testing.T) {
	f := newFixture(t)
	const rounds, watches = 400, 150
	put := func(key string, n int) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte(key), Value: fmt.Appendf(nil, "%d", n)}}}
	}
	written := make(chan int64, rounds) // the last acknowledged revision
	done := make(chan error, 1)
	go func() {
		defer close(written)
		for n := range rounds {
			txn := &pb.TxnRequest{Success: []*pb.RequestOp{put("p/a", n), put("p/b", n), put(fmt.Sprintf("p/%d", n), n)}}
			answer, err := f.kv.Txn(f.ctx, txn)
			if err != nil {
				done <- err
				return
			}
			written <- answer.Header.Revision
		}
		done <- nil
	}()
	behind := 0
	for revision := range written {
		if revision%int64(rounds/watches) != 0 {
			continue
		}
		// From slightly before to slightly after the revision that is being written.
		c := f.call(f.conn)
		next, last := max(2, revision-5), min(revision+3, rounds+1)
		c.send(createOf(prefixOf("p/", next)))
		seen := map[string]bool{}
		for at := next; at < last || len(seen) < 3*int(last-next+1); {
			answer := c.next()
			if len(answer.Events) > 3 {
				behind++ // more than one revision in a response: it was read from history
			}
			for _, event := range answer.Events {
				name := fmt.Sprintf("%s@%d", event.Kv.Key, event.Kv.ModRevision)
				if seen[name] || event.Kv.ModRevision < at {
					f.Fatalf("%s came again, or late, at %d", name, at)
				}
				if at = event.Kv.ModRevision; at <= last {
					seen[name] = true
				}
			}
		}
		c.cancel()
	}
	f.must(<-done)
	if behind == 0 {
		f.Error("no watch read history, so the test shows nothing")
	}
}

// Each change of a transaction is one event; a transaction that only reads or fails has none.
func TestTransactionsShowEachChangeOnce(t *testing.T) {
	f := newFixture(t)
	c := f.call(f.conn)
	c.create(prefixOf("p/", 0))
	put := func(key string) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("v")}}}
	}
	get := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: []byte("p/a")}}}
	never := &pb.Compare{Key: []byte("p/a"), Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Version{Version: 1 << 40}}
	for _, txn := range []*pb.TxnRequest{
		{Success: []*pb.RequestOp{put("p/a"), get, put("p/b"), get, put("other")}},
		{Success: []*pb.RequestOp{get}},
		{Compare: []*pb.Compare{never}, Success: []*pb.RequestOp{put("p/c")}, Failure: []*pb.RequestOp{get}},
		{Compare: []*pb.Compare{never}, Success: []*pb.RequestOp{put("p/c")}, Failure: []*pb.RequestOp{put("p/d"),
			{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{put("p/e")}}}}}},
		{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("p/none")}}}, get}},
	} {
		_, err := f.kv.Txn(f.ctx, txn)
		f.must(err)
	}
	f.put("p/end", "v")
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "end@4" {
		for _, event := range c.next().Events {
			seen = append(seen, fmt.Sprintf("%s@%d", strings.TrimPrefix(string(event.Kv.Key), "p/"), event.Kv.ModRevision))
		}
	}
	if got := strings.Join(seen, " "); got != "a@2 b@2 d@3 e@3 end@4" {
		f.Error(got)
	}
}

// #17529: of hundreds of watches on one slow stream, some lost events that were compacted meanwhile,
// without being canceled.
func TestIssue17529SlowWatchesAreCanceledByACompaction(t *testing.T) {
	f := newFixture(t)
	c := f.call(f.connect())
	const watches = 300
	for range watches {
		q := prefixOf("p/", 0)
		q.PrevKv = true
		c.create(q)
	}
	f.fill("p/", 3000, 50, 300)
	f.compact(2900)
	last := f.fill("p/", 50, 50, 300)

	next := map[int64]int64{}
	ended := map[int64]int64{}
	for open := watches; open > 0; {
		answer := c.next()
		id := answer.WatchId
		if next[id] == 0 {
			next[id] = 2
		}
		if answer.Canceled && ended[id] == 0 {
			if answer.CompactRevision != 2900 || next[id] >= 2900 {
				f.Fatalf("watch %d was at %d and was canceled by a compaction to %d", id, next[id], answer.CompactRevision)
			}
			ended[id] = answer.CompactRevision
			open--
		}
		for _, event := range answer.Events {
			if event.Kv.ModRevision != next[id] {
				f.Fatalf("watch %d: %d came where %d should have", id, event.Kv.ModRevision, next[id])
			}
			if next[id]++; next[id] == last+1 {
				open--
			}
		}
	}
	f.Logf("%d of %d watches were canceled by the compaction", len(ended), watches)
}

// deletedAndCompacted puts at revision 2, deletes at 3, and compacts to 3.
func deletedAndCompacted(f *fixture) int64 {
	f.put("p/a", "first")
	revision := f.delete("p/a")
	f.put("p/b", "other")
	f.compact(revision)
	return revision
}

func wantDelete(f *fixture, revision int64) {
	f.Helper()
	c := f.call(f.conn)
	c.create(prefixOf("p/", revision))
	var events []*mvccpb.Event
	for len(events) < 2 {
		answer := c.next()
		if answer.Canceled {
			f.Fatalf("canceled: %v", answer)
		}
		events = append(events, answer.Events...)
	}
	first := events[0]
	if first.Type != mvccpb.Event_DELETE || string(first.Kv.Key) != "p/a" || first.Kv.ModRevision != revision {
		f.Errorf("the first event is %v", first)
	}
}

// #18089: a watch from the revision of a compaction missed the delete at that revision.
func TestIssue18089DeleteAtTheCompactedRevisionIsShown(t *testing.T) {
	f := newFixture(t)
	wantDelete(f, deletedAndCompacted(f))
}

// #19179: the same after a restart, and after two compactions.
func TestIssue19179DeleteAtTheCompactedRevisionIsShownAfterARestart(t *testing.T) {
	f := newFixture(t)
	revision := deletedAndCompacted(f)
	f.restart()
	wantDelete(f, revision)
	f.put("p/a", "again")
	second := f.delete("p/a")
	f.put("p/b", "other")
	f.compact(second)
	f.restart()
	wantDelete(f, second)
}

// #20221: a watch from a future revision received marks of earlier revisions, and resumed there after a
// reconnection.
func TestIssue20221WatchOfTheFutureReportsNoEarlierProgress(t *testing.T) {
	f := newFixture(t, "--watch-progress-notify-interval", "100ms")
	c := f.call(f.conn)
	q := prefixOf("p/", 100)
	q.ProgressNotify = true
	id := c.create(q)
	present := prefixOf("p/", 0)
	present.ProgressNotify = true
	other := c.create(present)
	c.send(progressOf())
	go func() {
		time.Sleep(500 * time.Millisecond)
		for range 110 {
			f.kv.Put(f.ctx, &pb.PutRequest{Key: []byte("p/a"), Value: []byte("v")})
		}
	}()
	others := 0
	for next := int64(100); next < 110; {
		answer := c.next()
		if answer.WatchId == other && len(answer.Events) == 0 {
			others++
		}
		if answer.WatchId == other {
			continue
		}
		if answer.WatchId == -1 && answer.Header.Revision < 100 {
			f.Fatalf("the whole stream was marked at %d", answer.Header.Revision)
		}
		if answer.WatchId == id && len(answer.Events) == 0 && answer.Header.Revision < 99 {
			f.Fatalf("a mark at %d on a watch from 100", answer.Header.Revision)
		}
		for _, event := range answer.Events {
			if event.Kv.ModRevision != next {
				f.Fatalf("%d came where %d should have", event.Kv.ModRevision, next)
			}
			next++
		}
	}
	if others == 0 {
		f.Error("no notification on the other watch, so the test shows nothing")
	}
}

// #22264: while a watcher was far behind, writes were blocked for nine tenths of the time.
func TestIssue22264WritesContinueWhileWatchersCatchUp(t *testing.T) {
	f := newFixture(t)
	last := f.fill("p/", 20000, 1000, 300)
	alone := putTimes(f, 200)

	stop := make(chan struct{})
	stopped := make(chan int)
	for range 2 {
		go func() {
			rounds := 0
			defer func() { stopped <- rounds }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !catchUp(f, last) {
					return
				}
				rounds++
			}
		}()
	}
	meanwhile := putTimes(f, 200)
	close(stop)
	rounds := <-stopped + <-stopped
	f.Logf("p90 of puts %v alone, %v during %d catch-ups; at worst %v",
		quantile(alone, 0.9), quantile(meanwhile, 0.9), rounds, quantile(meanwhile, 1))
	if quantile(meanwhile, 0.9) > 10*quantile(alone, 0.9)+time.Second {
		f.Error("watchers that catch up slow down writes")
	}
}

func putTimes(f *fixture, count int) (times []time.Duration) {
	for n := range count {
		begin := time.Now()
		f.put(fmt.Sprintf("live/%d", n), "v")
		times = append(times, time.Since(begin))
	}
	return times
}

func catchUp(f *fixture, last int64) bool {
	stream, err := pb.NewWatchClient(f.conn).Watch(f.ctx)
	if err != nil || stream.Send(createOf(prefixOf("p/", 2))) != nil {
		return false
	}
	defer stream.CloseSend()
	for next := int64(2); next <= last; {
		answer, err := stream.Recv()
		if err != nil || answer.Canceled {
			return false
		}
		next += int64(len(answer.Events))
	}
	return true
}

// #10681: after a compaction the previous value of a remaining event was missing.
func TestIssue10681PreviousValuesSurviveACompaction(t *testing.T) {
	onlyVigil(t, "it omits the previous value")
	f := newFixture(t)
	for n := range 3 {
		f.put("p/a", fmt.Sprint(n))
	}
	f.put("p/b", "b")
	atDelete := f.delete("p/b")
	for _, compaction := range []struct {
		revision int64
		restart  bool
		want     string
	}{
		{3, false, "p/a 0@2"}, {3, true, "p/a 0@2"}, {4, false, "p/a 1@3"}, {4, true, "p/a 1@3"},
		{atDelete, false, "p/b b@5"}, {atDelete, true, "p/b b@5"},
	} {
		if compaction.restart {
			f.restart()
		} else {
			f.compact(compaction.revision)
		}
		c := f.call(f.conn)
		q := prefixOf("p/", compaction.revision)
		q.PrevKv = true
		c.create(q)
		event := c.next().Events[0]
		got := "nothing"
		if event.PrevKv != nil {
			got = fmt.Sprintf("%s %s@%d", event.PrevKv.Key, event.PrevKv.Value, event.PrevKv.ModRevision)
		}
		if event.Kv.ModRevision != compaction.revision || got != compaction.want {
			f.Errorf("at %d, compacted to %d, restarted %v: before it was %s, want %s",
				event.Kv.ModRevision, compaction.revision, compaction.restart, got, compaction.want)
		}
		c.cancel()
	}
}
