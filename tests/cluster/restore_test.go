package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// save writes a snapshot of the cluster to a file.
func (f *fixture) save() string {
	f.Helper()
	path := filepath.Join(f.TempDir(), "snapshot")
	answer, err := f.direct.SnapshotWithVersion(f.ctx)
	f.must(err)
	defer answer.Snapshot.Close()
	file, err := os.Create(path)
	f.must(err)
	defer file.Close()
	_, err = file.ReadFrom(answer.Snapshot)
	f.must(err)
	return path
}

// restore replaces the data of all members by a snapshot. The ID of the cluster stays the same.
func (f *fixture) restore(snapshot string) {
	f.Helper()
	for _, member := range f.cluster.Members {
		member.Kill()
		member.Erase()
		args := append([]string{"snapshot", "restore", snapshot}, member.RestoreFlags()...)
		command := exec.CommandContext(f.ctx, filepath.Join(filepath.Dir(harness.Peer()), "etcdutl"), args...)
		if f.cluster.Options.Binary == harness.Debian {
			command = exec.CommandContext(f.ctx, "etcdctl", args...)
			command.Env = append(os.Environ(), "ETCDCTL_API=3")
		}
		if output, err := command.CombinedOutput(); err != nil {
			f.Fatalf("restore: %v\n%s", err, output)
		}
	}
	f.cluster.Start()
}

// A snapshot is restored while Vigil runs, under the same ID of the cluster. What was written after it
// is gone, so the mirror is discarded: reads show the restored state, a watch of the discarded past
// ends, and so does one that begins at a revision which may be known from there: older than the new
// mirror, or newer than everything. One from the new past is complete.
func TestSnapshotIsRestored(t *testing.T) {
	for name, more := range map[string]int{"lower revision": 0, "higher revision": 40} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, binary string) {
				f := newPlain(t, binary)
				id := statusOf(f, f.cluster.Members[0]).Header.ClusterId
				for n := range 10 {
					f.put(f.via, fmt.Sprintf("kept/%d", n), "old")
				}
				snapshot := f.save()
				var last int64
				for n := range 20 {
					last = f.put(f.via, fmt.Sprintf("lost/%d", n), "old")
				}
				running := f.via.Watch(f.ctx, "lost/", clientv3.WithPrefix(), clientv3.WithRev(last))
				f.follow(running, last, last)

				for _, member := range f.cluster.Members {
					member.Relay.Cut()
				}
				f.restore(snapshot)
				if now := statusOf(f, f.cluster.Members[0]).Header.ClusterId; now != id {
					t.Fatalf("the ID of the cluster is %x, and was %x", now, id)
				}
				for n := range more {
					f.put(f.direct, fmt.Sprintf("new/%d", n), "new")
				}
				for _, member := range f.cluster.Members {
					member.Relay.Restore()
				}
				f.awaitEqual()
				f.awaitEnd(running, last)
				f.eventually("the mirror to be discarded", func() bool {
					return !harness.IsVigil() || strings.Contains(f.front.Log(), "serving again")
				})
				first := f.put(f.via, "new/first", "new")
				now := f.put(f.via, "new/last", "new")
				f.sameEvents(first, now)
				for _, of := range []int64{2, last + 1 - int64(more)/4, last + 2} {
					if of < first || of > now+1 {
						f.wantVoid(of)
					}
				}
			})
		})
	}
}

// awaitEqual waits until the front shows the same keys as the cluster.
func (f *fixture) awaitEqual() {
	f.Helper()
	state := func(client *clientv3.Client, options ...clientv3.OpOption) string {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		answer, err := client.Get(ctx, "", append(options, clientv3.WithFromKey())...)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(answer.Kvs)
	}
	var wanted, linearizable, serializable string
	f.eventually("the front to show the restored state", func() bool {
		wanted, linearizable = state(f.direct), state(f.via)
		serializable = state(f.via, clientv3.WithSerializable())
		return wanted == linearizable && wanted == serializable
	})
}

// awaitEnd waits until a watch of a discarded past has ended. It must not receive anything after `last`:
// those revisions are others now.
func (f *fixture) awaitEnd(events clientv3.WatchChan, last int64) {
	f.Helper()
	if !harness.IsVigil() {
		return
	}
	for {
		select {
		case answer, open := <-events:
			if !open || answer.Err() != nil {
				f.Logf("the watch ended: %v", answer.Err())
				return
			}
			for _, event := range answer.Events {
				f.Errorf("a watch of the discarded past received %s at %d", event.Kv.Key, event.Kv.ModRevision)
			}
		case <-f.ctx.Done():
			f.Fatal("a watch of the discarded past continues")
		}
	}
}

// wantVoid expects a watch from this revision to end as compacted.
func (f *fixture) wantVoid(revision int64) {
	f.Helper()
	if !harness.IsVigil() {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for answer := range f.via.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithRev(revision)) {
		if answer.CompactRevision != 0 {
			return
		}
		f.must(answer.Err())
		for _, event := range answer.Events {
			f.Errorf("a watch from %d received %s at %d", revision, event.Kv.Key, event.Kv.ModRevision)
		}
	}
	f.Errorf("the watch from %d ended without a compact revision: %v", revision, f.ctx.Err())
}

// sameEvents compares two watches of all keys from one revision to another.
func (f *fixture) sameEvents(from, to int64) {
	f.Helper()
	var seen [2]string
	for n, client := range []*clientv3.Client{f.via, f.direct} {
		ctx, cancel := context.WithCancel(f.ctx)
		events := client.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithRev(from))
		for reached := int64(0); reached < to; {
			answer, open := <-events
			if !open || answer.Err() != nil {
				f.Errorf("a watch from %d ended at %d: %v", from, reached, answer.Err())
				break
			}
			for _, event := range answer.Events {
				seen[n] += fmt.Sprintln(event.Type, event.Kv)
				reached = event.Kv.ModRevision
			}
		}
		cancel()
	}
	f.wantSame("the events", seen[0], seen[1])
}
