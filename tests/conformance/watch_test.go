package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"vigil/tests/harness"
)

func TestWatchRanges(t *testing.T) {
	for _, test := range []struct {
		name, key string
		options   []clientv3.OpOption
		keys      string
	}{
		{"key", "b", nil, "b"},
		{"prefix", "b", []clientv3.OpOption{clientv3.WithPrefix()}, "b b/1 b0"},
		{"range", "b", []clientv3.OpOption{clientv3.WithRange("c")}, "b b/1 b0"},
		{"from key", "b0", []clientv3.OpOption{clientv3.WithFromKey()}, "b0 c d"},
		{"everything", "", []clientv3.OpOption{clientv3.WithPrefix()}, "a b b/1 b0 c d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			watch := f.watching(test.key, test.options...)
			for _, key := range strings.Fields("a b b/1 b0 c d") {
				f.put(key, "1")
			}
			for _, key := range strings.Fields("a b b/1 b0 c d") {
				f.delete(key)
			}
			var expect []string
			for i, key := range strings.Fields("a b b/1 b0 c d") {
				if strings.Contains(" "+test.keys+" ", " "+key+" ") {
					expect = append(expect, fmt.Sprintf("PUT %s=1@%d", key, i+2))
				}
			}
			for i, key := range strings.Fields("a b b/1 b0 c d") {
				if strings.Contains(" "+test.keys+" ", " "+key+" ") {
					expect = append(expect, fmt.Sprintf("DELETE %s@%d", key, i+8))
				}
			}
			f.wantEvents(watch, expect...)
			f.wantQuiet(watch)
		})
	}
}

func TestWatchFromThePast(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.put("k", fmt.Sprint(i)) // revisions 2 to 11
	}
	watch := f.client.Watch(f.ctx, "k", clientv3.WithRev(9))
	f.wantEvents(watch, "PUT k=7@9", "PUT k=8@10", "PUT k=9@11")
	f.put("k", "live")
	f.wantEvents(watch, "PUT k=live@12")
}

func TestWatchFromThePastOverALongHistory(t *testing.T) {
	f := newFixture(t)
	const count = 5000
	ops := make([]clientv3.Op, 100)
	for i := 0; i < count; i += len(ops) {
		for j := range ops {
			ops[j] = clientv3.OpPut(fmt.Sprintf("k%d", j), fmt.Sprint(i+j))
		}
		_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
		f.must(err)
	}
	watch := f.client.Watch(f.ctx, "k", clientv3.WithPrefix(), clientv3.WithRev(2))
	for i := 0; i < count; {
		r := f.receive(watch)
		f.must(r.Err())
		for _, event := range r.Events {
			want(f, "value", string(event.Kv.Value), fmt.Sprint(i))
			i++
		}
		want(f, "events of whole revisions", len(r.Events)%len(ops), 0)
	}
}

func TestWatchFromThePastFindsARareKey(t *testing.T) {
	f := newFixture(t)
	ops := make([]clientv3.Op, 100)
	for i := range 300 {
		for j := range ops {
			ops[j] = clientv3.OpPut(fmt.Sprintf("k%d", j), fmt.Sprint(i))
		}
		_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
		f.must(err)
	}
	f.put("rare", "1")
	// No other request wakes the watch in the middle of 30,000 events of other keys.
	f.wantEvents(f.client.Watch(f.ctx, "rare", clientv3.WithRev(2)), "PUT rare=1@302")
	f.wantEvents(f.client.Watch(f.ctx, "rare", clientv3.WithRev(302)), "PUT rare=1@302")
}

func TestWatchFromTheFutureWaits(t *testing.T) {
	f := newFixture(t)
	watch := f.watching("k", clientv3.WithRev(5))
	f.put("k", "2")
	f.put("k", "3")
	f.put("k", "4")
	f.wantQuiet(watch)
	f.put("k", "5")
	f.wantEvents(watch, "PUT k=5@5")
}

func TestWatchFromACompactedRevision(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.put("k", fmt.Sprint(i))
	}
	f.compact(8)
	watch := f.client.Watch(f.ctx, "k", clientv3.WithRev(7))
	r := f.receive(watch)
	want(f, "compact revision", r.CompactRevision, 8)
	want(f, "canceled", r.Canceled, true)
	f.wantError(r.Err(), rpctypes.ErrCompacted)
	f.wantClosed(watch)
	f.wantEvents(f.client.Watch(f.ctx, "k", clientv3.WithRev(8)),
		"PUT k=6@8", "PUT k=7@9", "PUT k=8@10", "PUT k=9@11")
}

func TestWatchSeesTheTombstoneAtTheCompactedRevision(t *testing.T) {
	f := newFixture(t)
	f.put("k", "1")
	f.delete("k")
	f.put("other", "1")
	f.compact(3)
	f.wantEvents(f.client.Watch(f.ctx, "k", clientv3.WithRev(3)), "DELETE k@3")
}

func TestWatchIsNotDisturbedByCompaction(t *testing.T) {
	f := newFixture(t)
	watch := f.watching("k")
	idle := f.watching("idle")
	for i := range 100 {
		r := f.put("k", fmt.Sprint(i))
		if i%10 == 9 {
			f.compact(r.Header.Revision)
		}
		f.wantEvents(watch, fmt.Sprintf("PUT k=%d@%d", i, i+2))
	}
	f.wantQuiet(idle)
	f.put("idle", "1")
	f.wantEvents(idle, "PUT idle=1@102")
}

func TestWatchPrevKV(t *testing.T) {
	f := newFixture(t)
	watch := f.watching("k", clientv3.WithPrevKV())
	f.put("k", "1")
	f.put("k", "2")
	f.delete("k")
	f.put("k", "3")
	f.wantEvents(watch, "PUT k=1@2", "PUT k=2@3<1@2", "DELETE k@4<2@3", "PUT k=3@5")
	f.wantEvents(f.client.Watch(f.ctx, "k", clientv3.WithPrevKV(), clientv3.WithRev(3)),
		"PUT k=2@3<1@2", "DELETE k@4<2@3", "PUT k=3@5")
}

func TestWatchPrevKVRightAfterCompaction(t *testing.T) {
	f := newFixture(t)
	onlyVigil(f) // etcd omits the previous value: its issue 10681
	f.put("k", "1")
	f.put("k", "2")
	f.put("k", "3")
	f.compact(3)
	f.wantEvents(f.client.Watch(f.ctx, "k", clientv3.WithPrevKV(), clientv3.WithRev(3)),
		"PUT k=2@3<1@2", "PUT k=3@4<2@3")
}

func TestWatchFilters(t *testing.T) {
	f := newFixture(t)
	puts := f.watching("k", clientv3.WithFilterDelete())
	deletes := f.watching("k", clientv3.WithFilterPut(), clientv3.WithPrevKV())
	nothing := f.watching("k", clientv3.WithFilterPut(), clientv3.WithFilterDelete())
	f.put("k", "1")
	f.delete("k")
	f.put("k", "2")
	f.wantEvents(puts, "PUT k=1@2", "PUT k=2@4")
	f.wantEvents(deletes, "DELETE k@3<1@2")
	f.wantQuiet(nothing)
	f.wantEvents(f.client.Watch(f.ctx, "k", clientv3.WithFilterPut(), clientv3.WithRev(1)), "DELETE k@3")
}

func TestWatchTransactionIsOneResponse(t *testing.T) {
	f := newFixture(t)
	f.put("d1", "1")
	f.put("d2", "1")
	watch := f.watching("", clientv3.WithPrefix())
	_, err := f.client.Txn(f.ctx).Then(clientv3.OpPut("z", "1"), clientv3.OpPut("a", "2"),
		clientv3.OpDelete("d", clientv3.WithPrefix()), clientv3.OpPut("m", "3")).Commit()
	f.must(err)
	r := f.receive(watch)
	want(f, "events", events(r), "PUT z=1@4 PUT a=2@4 DELETE d1@4 DELETE d2@4 PUT m=3@4")
	want(f, "header revision", r.Header.Revision, 4)
	f.put("a", "3")
	r = f.receive(watch)
	want(f, "header revision", r.Header.Revision, 5)
	want(f, "version", r.Events[0].Kv.Version, 2)
	want(f, "modified", r.Events[0].IsModify(), true)
}

func TestWatchProgressNotify(t *testing.T) {
	f := newFixture(t, "--watch-progress-notify-interval=200ms")
	watch := f.watching("k", clientv3.WithProgressNotify())
	silent := f.watching("k")
	f.put("other", "1")
	r := f.receive(watch)
	want(f, "progress", r.IsProgressNotify(), true)
	for r.Header.Revision < 2 { // sent before the put
		r = f.receive(watch)
		want(f, "progress", r.IsProgressNotify(), true)
	}
	want(f, "revision", r.Header.Revision, 2)
	f.put("k", "1")
	for r = f.receive(watch); len(r.Events) == 0; r = f.receive(watch) {
		want(f, "progress", r.IsProgressNotify(), true)
	}
	want(f, "events", events(r), "PUT k=1@3")
	r = f.receive(watch)
	want(f, "progress again", r.IsProgressNotify(), true)
	want(f, "revision", r.Header.Revision, 3)
	f.wantEvents(silent, "PUT k=1@3")
	f.wantQuiet(silent)
}

func TestWatchRequestProgress(t *testing.T) {
	f := newFixture(t)
	watch := f.watching("k")
	other := f.watching("other")
	f.put("x", "1")
	f.must(f.client.RequestProgress(f.ctx))
	for _, w := range []clientv3.WatchChan{watch, other} {
		r := f.receive(w)
		want(f, "progress", r.IsProgressNotify(), true)
		want(f, "revision", r.Header.Revision, 2)
	}
	for i := range 100 {
		f.put("k", fmt.Sprint(i))
	}
	f.must(f.client.RequestProgress(f.ctx))
	// All events up to the revision of the progress come before it.
	last := int64(0)
	for r := f.receive(watch); !r.IsProgressNotify(); r = f.receive(watch) {
		last = r.Events[len(r.Events)-1].Kv.ModRevision
	}
	want(f, "events before the progress", last, 102)
}

func TestWatchManyOnOneStream(t *testing.T) {
	f := newFixture(t)
	const count = 300
	watches := make([]clientv3.WatchChan, count)
	for i := range watches {
		options := []clientv3.OpOption{clientv3.WithPrevKV()}
		if i%3 == 0 {
			options = append(options, clientv3.WithPrefix())
		}
		watches[i] = f.watching(fmt.Sprintf("k%03d", i), options...)
	}
	var ops []clientv3.Op
	for i := range watches {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("k%03d", i), "1"))
		if len(ops) == 100 {
			_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
			f.must(err)
			ops = nil
		}
	}
	for i, watch := range watches {
		f.wantEvents(watch, fmt.Sprintf("PUT k%03d=1@%d", i, 2+i/100))
	}
}

// puts returns the events of a key k that was the first to be put, with the values 0, 1, …
func puts(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("PUT k=%d@%d", i, i+2)
	}
	return list
}

func TestWatchManyOfOneKey(t *testing.T) {
	f := newFixture(t)
	watches := make([]clientv3.WatchChan, 100)
	for i := range watches {
		watches[i] = f.watching("k")
	}
	for i := range 20 {
		f.put("k", fmt.Sprint(i))
	}
	for _, watch := range watches {
		f.wantEvents(watch, puts(20)...)
	}
}

func TestWatchCancelEndsOneOfMany(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	ended := f.client.Watch(ctx, "k")
	stays := f.watching("k")
	f.put("k", "1")
	f.wantEvents(ended, "PUT k=1@2")
	f.wantEvents(stays, "PUT k=1@2")
	cancel()
	f.wantClosed(ended)
	f.put("k", "2")
	f.wantEvents(stays, "PUT k=2@3")
}

// overBridge returns a client that uses a bridge, so that its connections can be cut.
func (f *fixture) overBridge() (*fixture, *bridge) {
	f.Helper()
	b := newBridge(f)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{b.url}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	f.must(err)
	f.Cleanup(func() { client.Close() })
	return &fixture{f.T, f.server, client, f.ctx}, b
}

func TestWatchResumesAfterTheConnectionIsCut(t *testing.T) {
	f := newFixture(t)
	cut, bridge := f.overBridge()
	watches := []clientv3.WatchChan{cut.watching("k"), cut.watching("k", clientv3.WithPrefix())}
	for i := range 200 {
		f.put("k", fmt.Sprint(i))
		if i%40 == 20 {
			bridge.cut()
		}
	}
	for _, watch := range watches {
		cut.wantEvents(watch, puts(200)...)
	}
}

func TestWatchResumesInTheMiddleOfALargeResponse(t *testing.T) {
	f := newFixture(t)
	value := strings.Repeat("v", 100<<10)
	for range 5 {
		var ops []clientv3.Op
		for i := range 10 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("k%d", i), value))
		}
		_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
		f.must(err)
	}
	cut, bridge := f.overBridge()
	watch := cut.client.Watch(f.ctx, "k", clientv3.WithPrefix(), clientv3.WithRev(2),
		clientv3.WithFragment())
	for i := 0; i < 50; {
		if i == 10 || i == 30 {
			bridge.cut()
		}
		r := cut.receive(watch)
		cut.must(r.Err())
		for _, event := range r.Events {
			want(f, "key", string(event.Kv.Key), fmt.Sprintf("k%d", i%10))
			want(f, "revision", event.Kv.ModRevision, int64(2+i/10))
			i++
		}
	}
}

func TestWatchResumesAfterTheServerIsKilled(t *testing.T) {
	f := newFixture(t)
	watch := f.watching("k")
	f.put("k", "before")
	f.wantEvents(watch, "PUT k=before@2")
	options := f.server.Options
	f.server.Kill()
	again := fixtureOn(t, harness.Start(t, options))
	again.put("k", "after")
	f.wantEvents(watch, "PUT k=after@3")
}

func TestWatchResumesAfterTheServerIsStopped(t *testing.T) {
	var patient []string // so long that waiting for a client would be noticed on any machine
	if !harness.IsEtcd(harness.Subject()) {
		patient = []string{"--shutdown-timeout=60s"}
	}
	f := newFixture(t, patient...)
	watch := f.watching("k")
	f.put("k", "before")
	begin := time.Now()
	f.must(f.server.Stop())
	if took := time.Since(begin); took > 20*time.Second && !harness.IsEtcd(harness.Subject()) {
		t.Errorf("a watch held the stop for %v", took)
	}
	again := fixtureOn(t, harness.Start(t, f.server.Options))
	again.put("k", "after")
	f.wantEvents(watch, "PUT k=before@2", "PUT k=after@3")
}
