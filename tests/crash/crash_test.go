package crash

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"vigil/tests/harness"
)

const (
	killsDefault  = 200
	workers       = 16
	historyChecks = 20 // of each worker after each kill
	hurryInterval = 5  // after this many kills, the server is also killed during its recovery
)

// world is the state that must hold across all runs on one data directory.
type world struct {
	*testing.T
	random    *rand.Rand
	options   harness.Options
	workers   []*worker
	compacted int64
	hashAt    int64 // a revision, and its hash at the end of the last check
	hash      uint32
	acked     int
}

// Every acknowledged write exists after a kill, with its revision; no other write is half applied;
// revisions never decrease. VIGIL_KILLS and VIGIL_CRASH_SEED change the number and times of kills.
func TestKillNine(t *testing.T) {
	seed := number("VIGIL_CRASH_SEED", time.Now().UnixNano())
	kills := int(number("VIGIL_KILLS", killsDefault))
	t.Logf("seed %d, %d kills", seed, kills)
	w := &world{T: t, random: rand.New(rand.NewSource(seed)), options: harness.Options{
		Dir: filepath.Join(t.TempDir(), "data"), Port: harness.FreePort()}}
	if !harness.IsEtcd(harness.Subject()) {
		// Small enough that segments are filled and checkpoints written within a run.
		w.options.Args = []string{"--segment-bytes", "4194304", "--checkpoint-bytes", "1048576"}
	}
	for id := range workers {
		w.workers = append(w.workers, newWorker(id, seed))
	}
	for kill := range kills {
		w.live(kill)
		if t.Failed() {
			return
		}
	}
	server := w.start()
	w.check(server)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d acknowledged writes, revision %d", w.acked, w.seen())
}

func number(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func (w *world) start() *harness.Server {
	server, err := harness.Launch(harness.Subject(), w.options)
	if err != nil {
		w.Fatal(err)
	}
	return server
}

// live is one run of the server: it recovers, is checked, works, and is killed.
func (w *world) live(kill int) {
	if kill%hurryInterval == 0 {
		w.killWhileRecovering()
	}
	server := w.start()
	w.check(server)
	if w.Failed() {
		server.Kill()
		w.Logf("the server's log:\n%s", server.Log())
		return
	}
	var all sync.WaitGroup
	for _, one := range w.workers {
		all.Add(1)
		go func() {
			defer all.Done()
			one.run(server.Addr)
		}()
	}
	time.Sleep(w.workingTime())
	select {
	case <-server.Exited():
		w.Errorf("the server ended by itself\n%s", server.Log())
	default:
	}
	server.Kill()
	all.Wait()
	for _, one := range w.workers {
		w.acked += len(one.acked)
		if one.failure != nil {
			w.Error(one.failure)
		}
	}
	w.checkUnique()
}

func (w *world) workingTime() time.Duration {
	if w.random.Intn(10) == 0 {
		return time.Duration(w.random.Intn(400)) * time.Millisecond
	}
	return time.Duration(w.random.Intn(60_000)) * time.Microsecond
}

func (w *world) killWhileRecovering() {
	server, err := harness.Begin(harness.Subject(), w.options)
	if err != nil {
		w.Fatal(err)
	}
	time.Sleep(time.Duration(w.random.Intn(20_000)) * time.Microsecond)
	server.Kill()
}

func (w *world) seen() (highest int64) {
	for _, one := range w.workers {
		highest = max(highest, one.seen)
	}
	return highest
}

func (w *world) check(server *harness.Server) {
	conn, err := dial(server.Addr)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	kv := pb.NewKVClient(conn)
	maintenance := pb.NewMaintenanceClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()

	w.checkRevision(ctx, kv)
	w.checkHash(ctx, maintenance)
	for _, one := range w.workers {
		if err := one.check(ctx, kv); err != nil {
			w.Error(err)
		}
		if err := one.checkHistory(ctx, kv, w.compacted, historyChecks); err != nil {
			w.Error(err)
		}
	}
	w.compactSometimes(ctx, kv)
	w.takeHash(ctx, maintenance)
}

// checkRevision checks that the revision is not below the highest acknowledged one, and not above it
// by more than the number of pending writes.
func (w *world) checkRevision(ctx context.Context, kv pb.KVClient) {
	answer, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("x")})
	if err != nil {
		w.Fatal(err)
	}
	pending := 0
	for _, one := range w.workers {
		if one.pending != nil {
			pending++
		}
	}
	now, before := answer.Header.Revision, max(1, w.seen())
	if now < before {
		w.Errorf("the revision went back from %d to %d", before, now)
	}
	if now > before+int64(pending) {
		w.Errorf("the revision is %d, but %d was acknowledged and %d were pending", now, before, pending)
	}
	for _, one := range w.workers {
		one.seen = max(one.seen, now)
	}
}

func (w *world) checkUnique() {
	seen := map[int64]int{}
	for _, one := range w.workers {
		for _, done := range one.acked {
			if other, twice := seen[done.revision]; twice {
				w.Errorf("revision %d was given to workers %d and %d", done.revision, other, one.id)
			}
			seen[done.revision] = one.id
		}
	}
}

func (w *world) checkHash(ctx context.Context, maintenance pb.MaintenanceClient) {
	if w.hashAt == 0 {
		return
	}
	answer, err := maintenance.HashKV(ctx, &pb.HashKVRequest{Revision: w.hashAt})
	if err != nil {
		w.Errorf("hash at %d: %v", w.hashAt, err)
	} else if answer.Hash != w.hash {
		w.Errorf("the hash at revision %d was %08x and is %08x", w.hashAt, w.hash, answer.Hash)
	}
}

func (w *world) takeHash(ctx context.Context, maintenance pb.MaintenanceClient) {
	answer, err := maintenance.HashKV(ctx, &pb.HashKVRequest{})
	if err != nil {
		w.Error(err)
		return
	}
	w.hashAt, w.hash = answer.HashRevision, answer.Hash
}

func (w *world) compactSometimes(ctx context.Context, kv pb.KVClient) {
	if w.random.Intn(8) != 0 {
		return
	}
	target := w.compacted + (w.seen()-w.compacted)*3/4
	if target <= w.compacted || target <= 1 {
		return
	}
	_, err := kv.Compact(ctx, &pb.CompactionRequest{Revision: target, Physical: w.random.Intn(2) == 0})
	if err != nil {
		w.Error(fmt.Errorf("compact %d: %w", target, err))
		return
	}
	w.compacted = target
}
