package watch

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"vigil/tests/harness"
)

const settleLimit = 40 * time.Second

// world is one run: a server, writers, watchers of all kinds, and faults.
type world struct {
	*testing.T
	recorder
	random    *rand.Rand
	server    *harness.Server
	direct    *grpc.ClientConn
	via       string // the address that watchers use
	proxy     *proxy
	truth     *stream
	writers   []*writer
	compacted int64
	ctx       context.Context // of the watchers
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

func seedOf(t *testing.T) int64 {
	if seed, err := strconv.ParseInt(os.Getenv("VIGIL_WATCH_SEED"), 10, 64); err == nil {
		return seed
	}
	seed := time.Now().UnixNano()
	t.Logf("VIGIL_WATCH_SEED=%d", seed)
	return seed
}

func newWorld(t *testing.T, trouble trouble) *world {
	w := &world{T: t, random: rand.New(rand.NewSource(seedOf(t)))}
	server, err := harness.Launch(harness.Subject(), harness.Options{
		Dir: filepath.Join(t.TempDir(), "data"), Fast: true, Port: harness.FreePort(),
		// Responses are fragmented at 512 KiB more than the size limit of a request.
		Args: []string{"--watch-progress-notify-interval", "100ms", "--max-request-bytes", "65536"}})
	w.must(err)
	w.server, w.via = server, server.Addr
	w.Cleanup(func() {
		if err := w.server.Stop(); err != nil {
			w.Error(err)
		}
	})
	w.direct = w.connect(server.Addr)
	if trouble.cutting > 0 {
		w.proxy, err = newProxy(server.Addr, w.random.Int63(), trouble.cutting)
		w.must(err)
		w.Cleanup(w.proxy.Close)
		w.via = w.proxy.Addr
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) connect(addr string) *grpc.ClientConn {
	conn, err := dial(addr)
	w.must(err)
	w.Cleanup(func() { conn.Close() })
	return conn
}

func (w *world) anyRequest() Request {
	q := Request{Prev: w.random.Intn(2) == 0}
	switch from := w.random.Intn(writtenKeys - 10); w.random.Intn(5) {
	case 0:
		q.Key, q.End = "k/", "k0"
	case 1:
		q.Key, q.End = keyName(from), keyName(from+1+w.random.Intn(10))
	case 2:
		q.Key, q.End = keyName(from), "\x00"
	default:
		q.Key = keyName(from)
	}
	switch w.random.Intn(8) {
	case 0:
		q.NoPut = true
	case 1:
		q.NoDelete = true
	}
	switch known := w.known(); w.random.Intn(4) {
	case 0:
		q.Start = 1 + w.random.Int63n(known+1)
	case 1:
		q.Start = known + w.random.Int63n(60)
	case 2:
		q.Start = max(1, w.compacted)
	}
	return q
}

// watchers adds watches by the official client and on separate streams, for the rest of the run.
func (w *world) watchers(clients, streams, each int, pace time.Duration) {
	for n := range clients {
		client, err := newClient(w.via)
		w.must(err)
		w.Cleanup(func() { client.Close() })
		for m := range each {
			w.done.Add(1)
			go w.watchClient(w.ctx, client, fmt.Sprintf("client %d watch %d", n, m), w.anyRequest(),
				rand.New(rand.NewSource(w.random.Int63())))
		}
	}
	for n := range streams {
		s := w.stream(fmt.Sprintf("stream %d", n), w.connect(w.via))
		s.churn = true
		if n%2 == 1 {
			s.pace = pace
		}
		for range each {
			s.add(w.anyRequest())
		}
		w.done.Add(1)
		go s.run(w.ctx)
	}
}

func (w *world) stream(name string, conn *grpc.ClientConn) *stream {
	return &stream{recorder: &w.recorder, conn: conn, name: name,
		lateAnswers: harness.IsEtcd(harness.Subject()),
		random:      rand.New(rand.NewSource(w.random.Int63()))}
}

func (w *world) compact(ctx context.Context) {
	target := min(w.truth.watch[0].seen(), w.known()-w.random.Int63n(100))
	if target <= w.compacted {
		return
	}
	_, err := pb.NewKVClient(w.direct).Compact(ctx, &pb.CompactionRequest{
		Revision: target, Physical: w.random.Intn(2) == 0})
	if err != nil {
		w.Errorf("compact %d: %v", target, err)
		return
	}
	w.compacted = target
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

// run writes, watches and causes faults, then waits until all events have been received, and checks
// all recordings.
func run(t *testing.T, trouble trouble) *world {
	w := newWorld(t, trouble)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	w.ctx = ctx
	w.truth = w.stream("truth", w.connect(w.server.Addr))
	w.truth.add(Request{Key: "\x00", End: "\x00", Start: 1, Prev: true})
	w.done.Add(1)
	go w.truth.run(ctx)

	writing, stopWriting := context.WithTimeout(ctx, trouble.time)
	defer stopWriting()
	for n := range 3 {
		one := &writer{recorder: &w.recorder, conn: w.connect(w.server.Addr), id: n, pause: trouble.pause,
			random: rand.New(rand.NewSource(w.random.Int63()))}
		w.writers = append(w.writers, one)
		w.done.Add(1)
		go one.run(writing)
	}
	w.harass(writing, trouble)
	<-writing.Done()
	if w.proxy != nil {
		w.proxy.Settle()
	}
	w.settle(ctx)
	cancel()
	w.done.Wait()
	w.check()
	return w
}

// harass adds watchers over time and causes the faults of trouble.
func (w *world) harass(ctx context.Context, trouble trouble) {
	begin, kills, compactions := time.Now(), 0, 0
	for round := 0; ctx.Err() == nil; round++ {
		if round < 4 {
			w.watchers(1, 2, 8, trouble.pace)
		}
		time.Sleep(trouble.time / 20)
		passed := time.Since(begin)
		if kills < trouble.kills && passed > trouble.time*time.Duration(kills+1)/time.Duration(trouble.kills+1) {
			w.restart()
			kills++
		}
		if trouble.compact > 0 && passed > trouble.compact*time.Duration(compactions+1) && ctx.Err() == nil {
			w.compact(context.Background())
			compactions++
		}
	}
}

// settle waits until every watch has received its last event.
func (w *world) settle(ctx context.Context) {
	w.settling.Store(true)
	last, err := currentRevision(ctx, w.direct)
	w.must(err)
	deadline := time.Now().Add(settleLimit)
	for w.truth.watch[0].seen() < last && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	truth := w.history()
	again := w.stream("again", w.connect(w.server.Addr))
	again.add(Request{Key: "\x00", End: "\x00", Start: max(1, w.compacted), Prev: true})
	w.done.Add(1)
	go again.run(ctx)
	for !w.allReached(truth) && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(150 * time.Millisecond) // for unexpected events, and for marks at the end
}

func (w *world) allReached(truth *Truth) bool {
	w.lock.Lock()
	books := slices.Clone(w.books)
	w.lock.Unlock()
	return !slices.ContainsFunc(books, func(b *book) bool { return !b.gone() && !b.reached(truth) })
}

func (b *book) reached(truth *Truth) bool {
	b.lock.Lock()
	request, next, created := b.leg().Request, b.leg().next(), b.leg().Created
	b.lock.Unlock()
	return created > 0 && len(truth.Wanted(&request, next, truth.Last())) == 0
}

func (w *world) history() *Truth {
	w.lock.Lock()
	defer w.lock.Unlock()
	var events []Event
	for _, leg := range w.truth.watch[0].recording.Legs {
		for _, response := range leg.Responses {
			events = append(events, response.Events...)
		}
	}
	truth, err := NewTruth(events)
	if err != nil {
		w.Fatalf("the events of the first watch are inconsistent: %v", err)
	}
	truth.Compacted = w.compacted
	return truth
}

func (w *world) check() {
	truth := w.history()
	rules := Rules{MissingPrev: harness.IsEtcd(harness.Subject())}
	acked, legs, events, marks := 0, 0, 0, 0
	for _, one := range w.writers {
		if err := checkAcked(truth, one.acked); err != nil {
			w.Error(err)
		}
		acked += len(one.acked)
	}
	for _, b := range w.books {
		for _, fault := range Check(truth, rules, &b.recording) {
			w.Errorf("not %s: %s", fault.Guarantee, fault.Text)
		}
		for _, leg := range b.recording.Legs {
			legs++
			for _, r := range leg.Responses {
				events += len(r.Events)
				if r.Progress {
					marks++
				}
			}
		}
		if w.Failed() {
			break
		}
	}
	for _, failure := range w.failures {
		w.Error(failure)
	}
	if marks == 0 {
		w.Error("no watch received any progress mark")
	}
	w.Logf("%d acknowledged writes, revision %d, compacted %d; %d watches in %d legs received %d events and %d marks",
		acked, truth.Last(), truth.Compacted, len(w.books), legs, events, marks)
	if w.proxy != nil {
		w.Logf("%d connections cut", w.proxy.cuts())
	}
}

func TestGuarantees(t *testing.T) {
	t.Run("quiet", func(t *testing.T) {
		run(t, trouble{time: 2 * time.Second, pause: 3 * time.Millisecond})
	})
	t.Run("connections cut", func(t *testing.T) {
		w := run(t, trouble{time: 3 * time.Second, pause: 3 * time.Millisecond, cutting: 300_000})
		if w.proxy.cuts() < 10 {
			t.Errorf("only %d connections were cut", w.proxy.cuts())
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
