package watch

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	settleLimit  = 3 * time.Minute
	sessionLimit = 6 * time.Minute
)

// Place is a server to which clients connect.
type Place struct {
	Addr string
	Etcd bool // a real etcd, which is allowed more: see stream.lateAnswers
	Old  bool // an etcd before 3.4.31, whose progress marks may come too early: they are ignored
}

// Session is one run: writers, readers and watchers of all kinds, and the truth, which is one more
// watch from revision 1.
type Session struct {
	testing.TB
	recorder
	Rules       Rules
	CallLimit   time.Duration // of a write or a read
	random      *rand.Rand
	place       Place // of the truth
	direct      *grpc.ClientConn
	truth       *stream
	writers     []*writer
	readers     []*reader
	compacted   int64
	compactions []int64
	ctx         context.Context // of the watchers
	stop        context.CancelFunc
}

// Load says how many watches are added: official clients and separate streams, with `Each` watches.
type Load struct {
	Clients, Streams, Each int
	Pace                   time.Duration // every second stream reads slowly
}

// SeedOf is VIGIL_WATCH_SEED, or a new seed, which is logged.
func SeedOf(t testing.TB) int64 {
	if seed, err := strconv.ParseInt(os.Getenv("VIGIL_WATCH_SEED"), 10, 64); err == nil {
		return seed
	}
	seed := time.Now().UnixNano()
	t.Logf("VIGIL_WATCH_SEED=%d", seed)
	return seed
}

// NewSession begins to record the truth at a server whose history is complete.
func NewSession(t testing.TB, truth Place) *Session {
	t.Helper()
	s := &Session{TB: t, random: rand.New(rand.NewSource(SeedOf(t))), place: truth, CallLimit: callLimit}
	s.ctx, s.stop = context.WithTimeout(context.Background(), sessionLimit)
	t.Cleanup(s.stop)
	s.direct = s.connect(truth.Addr)
	s.truth = s.stream("truth", truth, s.direct)
	s.truth.add(Request{Key: "\x00", End: "\x00", Start: 1, Prev: true})
	s.done.Add(1)
	go s.truth.run(s.ctx)
	return s
}

// Random is the session's own source of chance.
func (s *Session) Random() *rand.Rand { return rand.New(rand.NewSource(s.random.Int63())) }

func (s *Session) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *Session) connect(addr string) *grpc.ClientConn {
	conn, err := dial(addr)
	s.must(err)
	s.Cleanup(func() { conn.Close() })
	return conn
}

func (s *Session) anyRequest() Request {
	q := Request{Prev: s.random.Intn(2) == 0}
	switch from := s.random.Intn(writtenKeys - 10); s.random.Intn(5) {
	case 0:
		q.Key, q.End = "k/", "k0"
	case 1:
		q.Key, q.End = keyName(from), keyName(from+1+s.random.Intn(10))
	case 2:
		q.Key, q.End = keyName(from), "\x00"
	default:
		q.Key = keyName(from)
	}
	switch s.random.Intn(8) {
	case 0:
		q.NoPut = true
	case 1:
		q.NoDelete = true
	}
	switch known := s.known(); s.random.Intn(4) {
	case 0:
		q.Start = 1 + s.random.Int63n(known+1)
	case 1:
		q.Start = known + s.random.Int63n(60)
	case 2:
		q.Start = max(1, s.compacted)
	}
	return q
}

// Watch adds watches for the rest of the session.
func (s *Session) Watch(at Place, load Load) {
	for n := range load.Clients {
		client, err := newClient(at.Addr)
		s.must(err)
		s.Cleanup(func() { client.Close() })
		for m := range load.Each {
			s.done.Add(1)
			go s.watchClient(s.ctx, client, fmt.Sprintf("%s client %d watch %d", at.Addr, n, m), s.anyRequest(), s.Random())
		}
	}
	for n := range load.Streams {
		one := s.stream(fmt.Sprintf("%s stream %d", at.Addr, n), at, s.connect(at.Addr))
		one.churn = true
		if n%2 == 1 {
			one.pace = load.Pace
		}
		for range load.Each {
			one.add(s.anyRequest())
		}
		s.done.Add(1)
		go one.run(s.ctx)
	}
}

func (s *Session) stream(name string, at Place, conn *grpc.ClientConn) *stream {
	return &stream{recorder: &s.recorder, conn: conn, name: name, lateAnswers: at.Etcd, earlyMarks: at.Old, random: s.Random()}
}

// Write starts a writer, which pauses up to `pause` between two writes until ctx ends.
func (s *Session) Write(ctx context.Context, addr string, pause time.Duration) {
	one := &writer{recorder: &s.recorder, conn: s.connect(addr), id: len(s.writers), pause: pause,
		limit: s.CallLimit, random: s.Random()}
	s.writers = append(s.writers, one)
	s.users.Add(1)
	go one.run(ctx)
}

// Read starts a reader, which pauses up to `pause` between two reads until ctx ends.
func (s *Session) Read(ctx context.Context, addr string, pause time.Duration) {
	one := &reader{recorder: &s.recorder, conn: s.connect(addr), name: fmt.Sprintf("reader %d at %s", len(s.readers), addr),
		pause: pause, limit: s.CallLimit, random: s.Random()}
	s.readers = append(s.readers, one)
	s.users.Add(1)
	go one.run(ctx)
}

// Compact compacts up to a revision that the truth has seen.
func (s *Session) Compact() {
	target := min(s.truth.watch[0].seen(), s.known()-s.random.Int63n(100))
	if target <= s.compacted {
		return
	}
	_, err := pb.NewKVClient(s.direct).Compact(s.ctx, &pb.CompactionRequest{
		Revision: target, Physical: s.random.Intn(2) == 0}, grpc.WaitForReady(true)) // it may have restarted
	if err != nil {
		s.Errorf("compact %d: %v", target, err)
		return
	}
	s.compacted = target
	s.compactions = append(s.compactions, target)
}

// Finish waits until all watches have received all events, and checks all recordings. The writers and
// readers must have been stopped; what they have under way is waited for, because it would become a part of
// the history for whose events no watch was waited.
func (s *Session) Finish() {
	s.Helper()
	s.users.Wait()
	s.settle()
	s.stop()
	s.done.Wait()
	s.check()
}

// settle waits until every watch has received its last event.
func (s *Session) settle() {
	s.settling.Store(true)
	last, err := currentRevision(s.ctx, s.direct)
	s.must(err)
	deadline := time.Now().Add(settleLimit)
	for s.truth.watch[0].seen() < last && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	again := s.stream("again", s.place, s.connect(s.place.Addr))
	again.add(Request{Key: "\x00", End: "\x00", Start: max(1, s.compacted), Prev: true})
	s.done.Add(1)
	go again.run(s.ctx)
	// A write that was not acknowledged may still happen.
	for truth := s.history(); ; truth = s.history() {
		for !s.allReached(truth) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(150 * time.Millisecond) // for unexpected events, and for marks at the end
		if s.history().Last() == truth.Last() || time.Now().After(deadline) {
			return
		}
	}
}

func (s *Session) allReached(truth *Truth) bool {
	s.lock.Lock()
	books := slices.Clone(s.books)
	s.lock.Unlock()
	return !slices.ContainsFunc(books, func(b *book) bool { return !b.gone() && !b.reached(truth) })
}

func (b *book) reached(truth *Truth) bool {
	b.lock.Lock()
	request, next, created := b.leg().Request, b.leg().next(), b.leg().Created
	b.lock.Unlock()
	return created > 0 && len(truth.Wanted(&request, next, truth.Last())) == 0
}

func (s *Session) history() *Truth {
	s.lock.Lock()
	defer s.lock.Unlock()
	var events []Event
	for _, leg := range s.truth.watch[0].recording.Legs {
		for _, response := range leg.Responses {
			events = append(events, response.Events...)
		}
	}
	truth, err := NewTruth(events)
	if err != nil {
		s.Fatalf("the events of the first watch are inconsistent: %v", err)
	}
	truth.Compacted, truth.Compactions = s.compacted, s.compactions
	return truth
}

func (s *Session) check() {
	truth := s.history()
	acked, legs, events, marks, reads := 0, 0, 0, 0, 0
	for _, one := range s.writers {
		if err := checkAcked(truth, one.acked); err != nil {
			s.Error(err)
		}
		acked += len(one.acked)
	}
	for _, one := range s.readers {
		for _, fault := range checkReads(truth, one.reads) {
			s.Errorf("%s: %s", one.name, fault)
		}
		reads += len(one.reads)
	}
	for _, b := range s.books {
		for _, fault := range Check(truth, s.Rules, &b.recording) {
			s.Errorf("not %s: %s", fault.Guarantee, fault.Text)
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
		if s.Failed() {
			break
		}
	}
	for _, failure := range s.failures {
		s.Error(failure)
	}
	if marks == 0 {
		s.Error("no watch received any progress mark")
	}
	s.Logf("%d acknowledged writes, %d reads, revision %d, compacted %d; %d watches in %d legs received %d events and %d marks",
		acked, reads, truth.Last(), truth.Compacted, len(s.books), legs, events, marks)
}
