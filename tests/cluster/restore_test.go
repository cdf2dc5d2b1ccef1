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

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

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

// newOne has a single member, whose raft term is the same before and after a restore.
func newOne(t *testing.T, binary string, args ...string) *fixture {
	t.Helper()
	return newFixture(t, harness.ClusterOptions{Binary: binary, Size: 1}, harness.FrontOptions{Args: args})
}

// replace restores a snapshot while the front is cut off, and then writes something.
func (f *fixture) replace(snapshot string, write func()) {
	f.Helper()
	for _, member := range f.cluster.Members {
		member.Relay.Cut()
	}
	f.restore(snapshot)
	write()
	for _, member := range f.cluster.Members {
		member.Relay.Restore()
	}
}

// A snapshot is restored, and written until it has more revisions than the mirror. Whatever the last
// change is, the front shows the new past, and the watches of the discarded one end.
func TestPastDiffersBeforeItsEnd(t *testing.T) {
	for name, args := range map[string][]string{"all keys": nil, "prefix": {"--upstream-prefix", "r/"}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, binary string) {
				f := newOne(t, binary, args...)
				f.put(f.via, "r/beat", "alive")
				snapshot := f.save()
				f.put(f.via, "r/old", "old")
				last := f.put(f.via, "r/beat", "alive")
				running := f.via.Watch(f.ctx, "r/", clientv3.WithPrefix(), clientv3.WithRev(last))
				f.follow(running, last, last)
				f.replace(snapshot, func() {
					f.put(f.direct, "r/new", "new")
					f.put(f.direct, "r/beat", "alive")
					f.put(f.direct, "r/later", "new")
				})
				f.awaitEqual()
				f.awaitEnd(running, last)
			})
		})
	}
}

// A watch that is created while the front is cut off waits until it is known whether the cluster still has
// the mirror's past: then it receives its events, or ends without any of the discarded ones. If the comparison takes
// long, as on a busy machine, the cluster itself answers the watch: then its events are of the new past.
func TestWatchIsCreatedWhileCutOff(t *testing.T) {
	for name, restored := range map[string]bool{"same past": false, "other past": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !harness.IsVigil() {
				t.Skip("others have no mirror")
			}
			f := newOne(t, harness.Peer())
			member := f.cluster.Members[0]
			f.put(f.via, "k", "0")
			snapshot := f.save()
			first := f.put(f.via, "k", "old")
			last := f.put(f.via, "k", "older")
			running := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
			f.follow(running, first, last)
			member.Relay.Cut()
			f.awaitMetric("vigil_cluster_connected", "0")
			created := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
			select {
			case answer := <-created:
				t.Errorf("before the pasts are compared: %v %v", answer.Events, answer.Err())
			case <-time.After(2 * time.Second):
			}
			if restored {
				f.restore(snapshot)
				f.put(f.direct, "k", "new")
			}
			member.Relay.Restore()
			if restored {
				answer := <-created
				for _, event := range answer.Events {
					if string(event.Kv.Value) != "new" {
						t.Errorf("a discarded event: %s=%s at %d", event.Kv.Key, event.Kv.Value, event.Kv.ModRevision)
					}
				}
				if answer.Err() == nil && len(answer.Events) == 0 {
					t.Errorf("neither events nor an end: %v", answer)
				}
				f.awaitEnd(running, last)
			} else {
				f.follow(created, first, last)
			}
		})
	}
}

// The same keys have the same revisions in both pasts, and the new one is compacted where they differ.
func TestPastIsCompactedWhereItDiffers(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newOne(t, binary)
		f.put(f.via, "beat", "0")
		snapshot := f.save()
		f.put(f.via, "x", "old")
		last := f.put(f.via, "y", "old")
		running := f.via.Watch(f.ctx, "", clientv3.WithFromKey(), clientv3.WithRev(last))
		f.follow(running, last, last)
		f.replace(snapshot, func() {
			f.put(f.direct, "x", "new")
			f.put(f.direct, "y", "new")
			f.put(f.direct, "beat", "1")
			now := f.put(f.direct, "beat", "2")
			_, err := f.direct.Compact(f.ctx, now)
			f.must(err)
		})
		f.awaitEqual()
		f.awaitEnd(running, last)
	})
}

// Both pasts come to the same state, by other ways. History is that of the cluster, too.
func TestPastDiffersAndStateIsTheSame(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newOne(t, binary)
		f.put(f.via, "x", "0")
		snapshot := f.save()
		first := f.put(f.via, "x", "old")
		f.put(f.via, "x", "same")
		f.awaitEqual()
		f.replace(snapshot, func() {
			f.put(f.direct, "x", "new")
			f.put(f.direct, "x", "same")
		})
		last := f.put(f.direct, "x", "later")
		f.awaitEqual()
		for revision := first; revision <= last; revision++ {
			var seen [2]string
			for n, client := range []*clientv3.Client{f.via, f.direct} {
				answer, err := client.Get(f.ctx, "x", clientv3.WithRev(revision), clientv3.WithSerializable())
				f.must(err)
				seen[n] = fmt.Sprint(answer.Kvs)
			}
			f.wantSame(fmt.Sprint("at ", revision), seen[0], seen[1])
		}
		f.sameEvents(first, last)
	})
}

// A connection that breaks costs watches nothing. Whether it costs the cluster a reading of its state
// depends on its raft log: one of millions of entries cannot be that of a cluster that was restored
// in between.
func TestReconnectionKeepsWatches(t *testing.T) {
	for name, entries := range map[string]uint64{"young": 0, "old": 100 * 1000 * 1000} {
		for kind, args := range map[string][]string{"all keys": nil, "prefix": {"--upstream-prefix", "k/"}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				onEach(t, func(t *testing.T, binary string) {
					f := newOne(t, binary, args...)
					member := f.cluster.Members[0]
					changer := harness.StartChanger(t, member.Addr)
					changer.Set(func(method string, _, answer []byte) []byte {
						var status pb.StatusResponse
						if method != pb.Maintenance_Status_FullMethodName || proto.Unmarshal(answer, &status) != nil {
							return answer
						}
						status.RaftIndex += entries
						answer, _ = proto.Marshal(&status)
						return answer
					})
					member.Relay.Redirect(changer.Addr)
					member.Relay.CutAll()
					next := f.put(f.direct, "k/0", "v")
					running := f.via.Watch(f.ctx, "k/", clientv3.WithPrefix(), clientv3.WithRev(next))
					f.follow(running, next, next)
					time.Sleep(3 * time.Second) // the front has asked where the log is
					loads := f.metric("vigil_cluster_loads_total")
					const cuts = 4
					for n := range int64(cuts) {
						member.Relay.CutAll()
						next++
						if got := f.put(f.direct, "k/0", fmt.Sprint(n)); got != next {
							t.Fatalf("%d is not the next revision after %d", got, next-1)
						}
						f.follow(running, next, next)
					}
					loads = f.metric("vigil_cluster_loads_total") - loads
					if (entries > 0 && loads != 0) || loads > cuts {
						t.Errorf("%d connections were cut, and the state was read %d times", cuts, loads)
					}
				})
			})
		}
	}
}

// follows says whether the front has decided that its mirror is the cluster's: before that it forwards
// all reads.
func (f *fixture) follows() bool {
	f.Helper()
	answer, err := f.direct.Get(f.ctx, "x", clientv3.WithCountOnly())
	f.must(err)
	_, text := page(f.front.URL + "/metrics")
	var mirrored int64
	if _, after, found := strings.Cut(text, "\nvigil_cluster_mirrored_revision "); found {
		fmt.Sscan(after, &mirrored)
	}
	return !harness.IsVigil() ||
		(strings.Contains(text, "\nvigil_cluster_connected 1\n") && mirrored >= answer.Header.Revision)
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
		if !f.follows() {
			return false
		}
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
