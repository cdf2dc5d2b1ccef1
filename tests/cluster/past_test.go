package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// Watches that begin before the mirror does, and those of keys that are not mirrored.

// startLate fills a cluster of one member and then starts a front, whose mirror has nothing of that past.
func startLate(t *testing.T, binary string, fill func(f *fixture), args ...string) *fixture {
	t.Helper()
	f := &fixture{T: t, cluster: harness.StartCluster(t, harness.ClusterOptions{Binary: binary, Size: 1})}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	f.front = harness.NewFront(f.cluster, harness.FrontOptions{Args: args})
	f.direct = f.client(f.cluster.Members[0].URL)
	fill(f)
	f.front.Start()
	f.via = f.client(f.front.URL)
	f.awaitSync(f.via)
	return f
}

// writePast makes revisions of every kind: puts, transactions, deletes, keys that return.
func writePast(f *fixture) {
	for n := range 300 {
		var ops []clientv3.Op
		for k := range 1 + n%20 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("a/%02d", k), fmt.Sprint(n)))
		}
		_, err := f.direct.Txn(f.ctx).Then(ops...).Commit()
		f.must(err)
		f.put(f.direct, fmt.Sprintf("b/%d", n%7), fmt.Sprint(n))
		if n%10 == 0 {
			_, err = f.direct.Delete(f.ctx, "a/", clientv3.WithPrefix())
			f.must(err)
		}
	}
}

// events reads a watch until it has seen a revision, and returns its events as text.
func (f *fixture) events(events clientv3.WatchChan, last int64) (all []string, err error) {
	for {
		select {
		case answer, open := <-events:
			if !open || answer.Err() != nil {
				return all, answer.Err()
			}
			for _, event := range answer.Events {
				text, err := json.Marshal(event)
				f.must(err)
				all = append(all, string(text))
				if event.Kv.ModRevision >= last {
					return all, nil
				}
			}
		case <-f.ctx.Done():
			return all, f.ctx.Err()
		}
	}
}

func (f *fixture) compare(what string, got, wanted []string) {
	f.Helper()
	for n := range max(len(got), len(wanted)) {
		if n >= len(got) || n >= len(wanted) || got[n] != wanted[n] {
			f.Fatalf("%s: %d events instead of %d; the first that differs is event %d", what, len(got), len(wanted), n)
		}
	}
}

func TestPastIsTheClusters(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := startLate(t, binary, writePast)
		last := f.put(f.direct, "c", "end")
		for _, options := range [][]clientv3.OpOption{
			{clientv3.WithPrevKV(), clientv3.WithRev(1)},
			{clientv3.WithRev(100), clientv3.WithFragment()},
			{clientv3.WithPrevKV(), clientv3.WithRev(last - 1), clientv3.WithFilterDelete()},
			{clientv3.WithRev(last)},
		} {
			options = append(options, clientv3.WithPrefix())
			wanted, err := f.events(f.direct.Watch(f.ctx, "", options...), last)
			f.must(err)
			got, err := f.events(f.via.Watch(f.ctx, "", options...), last)
			f.must(err)
			f.compare("all keys", got, wanted)
		}
		if !harness.IsVigil() {
			return
		}
		f.eventually("the fetched past is counted", func() bool {
			return f.metric("vigil_cluster_past_fetches_total") > 0 && f.metric("vigil_cluster_past_bytes") > 0
		})
		f.eventually("all of it was fetched", func() bool { return f.metric("vigil_cluster_past_fetches") == 0 })
	})
}

// A thousand watches from the same few old revisions, and a compaction meanwhile: each gets all of its events in
// order, or ends with the cluster's compact revision.
func TestManyWatchesOfThePast(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := startLate(t, binary, writePast)
		var wait sync.WaitGroup
		last := f.put(f.direct, "b/0", "end")
		compacted := last / 2
		for n := range 1000 {
			from := int64(1 + n%10*60)
			if n == 500 {
				_, err := f.direct.Compact(f.ctx, compacted)
				f.must(err)
			}
			wait.Add(1)
			watched := f.via.Watch(f.ctx, "b/", clientv3.WithPrefix(), clientv3.WithRev(from))
			go func() {
				defer wait.Done()
				events, err := f.events(watched, last)
				if errors.Is(err, rpctypes.ErrCompacted) && from < compacted {
					return
				}
				if err != nil || len(events) == 0 {
					f.Errorf("from %d: %d events, %v", from, len(events), err)
				}
			}()
		}
		wait.Wait()
		f.eventually("the compaction", func() bool {
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			answer := <-f.via.Watch(ctx, "b/", clientv3.WithPrefix(), clientv3.WithRev(2))
			return answer.CompactRevision == compacted
		})
	})
}

// Watches of mirrored and of other keys share one stream of a client.
func TestWatchesOutsideThePrefixes(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := startLate(t, binary, writePast, "--upstream-prefix", "a/", "--upstream-prefix", "/registry/")
		last := f.put(f.direct, "b/0", "now")
		wanted, err := f.events(f.direct.Watch(f.ctx, "b/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV()), last)
		f.must(err)
		inside := f.via.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithCreatedNotify())
		outside := f.via.Watch(f.ctx, "b/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV())
		live := f.via.Watch(f.ctx, "z", clientv3.WithCreatedNotify())
		got, err := f.events(outside, last)
		f.must(err)
		f.compare("outside", got, wanted)
		if answer := <-live; !answer.Created {
			f.Fatalf("the watch was not created: %v", answer.Err())
		}
		f.put(f.via, "a/live", "1")
		f.put(f.via, "z", "2")
		ended := f.put(f.via, "a/end", "3")
		if _, err = f.events(live, ended-1); err != nil {
			f.Fatal(err)
		}
		if _, err = f.events(inside, ended); err != nil {
			f.Fatal(err)
		}
		if binary != harness.Debian { // an old etcd answers at once, and may be wrong
			f.must(f.via.RequestProgress(f.ctx))
			f.awaitProgress(live, ended)
		}
		// A watch that ends leaves the others.
		ctx, cancel := context.WithCancel(f.ctx)
		other := f.via.Watch(ctx, "y", clientv3.WithCreatedNotify())
		<-other
		cancel()
		for range other {
		}
		f.put(f.via, "z", "4")
		if answer := <-live; len(answer.Events) != 1 {
			f.Errorf("no event after another watch was canceled: %+v", answer)
		}
	})
}

// awaitProgress waits for progress up to a revision.
func (f *fixture) awaitProgress(watched clientv3.WatchChan, revision int64) {
	f.Helper()
	for ticks := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case answer := <-watched:
			if answer.IsProgressNotify() && answer.Header.Revision >= revision {
				return
			}
		case <-ticks.C:
			f.must(f.via.RequestProgress(f.ctx))
		case <-f.ctx.Done():
			f.Fatal("there was no progress")
		}
	}
}
