package watch

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"vigil/tests/harness"
)

// world is a session with one server and its faults.
type world struct {
	*Session
	server *harness.Server
	via    Place // which watchers use
	proxy  *harness.Relay
}

// trouble says which faults a run has.
type trouble struct {
	time    time.Duration // of writing
	pause   time.Duration // of a writer, at most
	cutting int64         // bytes after which a connection is cut, on average
	kills   int
	pace    time.Duration // of slow readers
	compact time.Duration // between compactions
}

func newWorld(t *testing.T, trouble trouble) *world {
	server, err := harness.Launch(harness.Subject(), harness.Options{
		Dir: filepath.Join(t.TempDir(), "data"), Fast: true, Port: harness.FreePort(),
		// Responses are fragmented at 512 KiB more than the size limit of a request.
		Args: []string{"--watch-progress-notify-interval", "100ms", "--max-request-bytes", "65536"}})
	if err != nil {
		t.Fatal(err)
	}
	place := Place{Addr: server.Addr, Etcd: harness.IsEtcd(harness.Subject())}
	w := &world{Session: NewSession(t, place), server: server, via: place}
	w.Rules.MissingPrev = place.Etcd || harness.InFront() // which may have asked an etcd
	w.Cleanup(func() {
		if err := w.server.Stop(); err != nil {
			w.Error(err)
		}
	})
	if trouble.cutting > 0 {
		w.proxy, err = harness.NewCuttingRelay(server.Addr, w.random.Int63(), trouble.cutting)
		w.must(err)
		w.Cleanup(w.proxy.Close)
		w.via.Addr = w.proxy.Addr
	}
	return w
}

func (w *world) restart() {
	if w.random.Intn(3) == 0 {
		w.must(w.server.Stop())
	} else {
		w.server.Kill()
	}
	time.Sleep(time.Duration(w.random.Intn(100)) * time.Millisecond)
	options := w.server.Options
	options.Dir = w.server.Dir
	server, err := harness.Launch(harness.Subject(), options)
	w.must(err)
	w.server = server
}

// run writes, reads, watches and causes faults, then waits until all events have been received, and
// checks all recordings.
func run(t *testing.T, trouble trouble) *world {
	w := newWorld(t, trouble)
	writing, stopWriting := context.WithTimeout(w.ctx, trouble.time)
	defer stopWriting()
	for range 3 {
		w.Write(writing, w.server.Addr, trouble.pause)
	}
	w.Read(writing, w.server.Addr, 10*trouble.pause)
	w.harass(writing, trouble)
	<-writing.Done()
	if w.proxy != nil {
		w.proxy.Settle()
	}
	w.Finish()
	if w.proxy != nil {
		w.Logf("%d connections cut", w.proxy.Cuts())
	}
	return w
}

// harass adds watchers over time and causes the faults of trouble.
func (w *world) harass(ctx context.Context, trouble trouble) {
	begin, kills, compactions := time.Now(), 0, 0
	for round := 0; ctx.Err() == nil; round++ {
		if round < 4 {
			w.Watch(w.via, Load{Clients: 1, Streams: 2, Each: 8, Pace: trouble.pace})
		}
		time.Sleep(trouble.time / 20)
		passed := time.Since(begin)
		if kills < trouble.kills && passed > trouble.time*time.Duration(kills+1)/time.Duration(trouble.kills+1) {
			w.restart()
			kills++
		}
		if trouble.compact > 0 && passed > trouble.compact*time.Duration(compactions+1) && ctx.Err() == nil {
			w.Compact()
			compactions++
		}
	}
}

func TestGuarantees(t *testing.T) {
	t.Run("quiet", func(t *testing.T) {
		run(t, trouble{time: 2 * time.Second, pause: 3 * time.Millisecond})
	})
	t.Run("connections cut", func(t *testing.T) {
		w := run(t, trouble{time: 3 * time.Second, pause: 3 * time.Millisecond, cutting: 300_000})
		if w.proxy.Cuts() < 10 {
			t.Errorf("only %d connections were cut", w.proxy.Cuts())
		}
	})
	t.Run("killed", func(t *testing.T) {
		run(t, trouble{time: 4 * time.Second, pause: 3 * time.Millisecond, kills: 3})
	})
	t.Run("slow readers", func(t *testing.T) {
		run(t, trouble{time: 3 * time.Second, pause: 2 * time.Millisecond, pace: 4 * time.Millisecond})
	})
	t.Run("compactions", func(t *testing.T) {
		run(t, trouble{time: 3 * time.Second, pause: 2 * time.Millisecond, pace: 8 * time.Millisecond,
			compact: 300 * time.Millisecond})
	})
	t.Run("everything", func(t *testing.T) {
		run(t, trouble{time: 5 * time.Second, pause: 2 * time.Millisecond, pace: 8 * time.Millisecond,
			compact: 500 * time.Millisecond, cutting: 1_000_000, kills: 2})
	})
}
