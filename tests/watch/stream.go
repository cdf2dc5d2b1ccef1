package watch

import (
	"context"
	"math/rand"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// stream is one client with one Watch call that has many watches. It does more than official clients:
// it picks watch IDs, cancels watches and creates them again, requests progress at random, and reads
// slowly.
type stream struct {
	*recorder
	conn   *grpc.ClientConn
	name   string
	random *rand.Rand
	watch  []*rawWatch
	pace   time.Duration // slept after each answer, at most
	churn  bool          // cancels and creates watches meanwhile
	// lateAnswers: control answers overtake others, as in etcd. A canceled watch may receive more events,
	// and the mark of a whole stream may come after the created answer of a watch that it does not
	// cover. Also, the ID of a compacted watch stays in use. With lateAnswers, IDs are not reused, and
	// marks count only while no watch has been created again.
	lateAnswers bool
	earlyMarks  bool // marks may come before their events, and are ignored

	call    pb.Watch_WatchClient
	asked   []*rawWatch // requested watches, in the order of their created answers
	live    map[int64]*rawWatch
	renewed bool              // a watch of this call was canceled and created again
	partial *pb.WatchResponse // fragments of an incomplete response

	fragments int // seen
}

type rawWatch struct {
	*book
	request  Request
	id       int64 // requested ID; 0: the server chooses
	fragment bool
	notify   bool
}

func (s *stream) add(request Request) {
	w := &rawWatch{book: s.open(s.name, true), request: request, fragment: s.random.Intn(2) == 0,
		notify: s.random.Intn(2) == 0}
	if s.random.Intn(3) == 0 {
		w.id = 1000 + int64(len(s.watch))
	}
	w.begin(request, s.known())
	s.watch = append(s.watch, w)
}

// run watches until ctx ends. When the stream breaks, it opens another.
func (s *stream) run(ctx context.Context) {
	defer s.done.Done()
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			time.Sleep(10 * time.Millisecond)
			for _, w := range s.watch {
				w.request = w.resume()
			}
		}
		s.once(ctx)
	}
}

// once runs one stream until it ends for any reason.
func (s *stream) once(parent context.Context) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	s.asked, s.live, s.partial, s.renewed = nil, map[int64]*rawWatch{}, nil, false
	call, err := pb.NewWatchClient(s.conn).Watch(ctx, grpc.WaitForReady(true))
	if err != nil {
		return
	}
	s.call = call
	for _, w := range s.watch {
		if s.create(w) != nil {
			return
		}
	}
	for {
		answer, err := call.Recv()
		if err != nil {
			return
		}
		if err := s.take(answer); err != nil {
			return
		}
		if s.pace > 0 {
			time.Sleep(time.Duration(s.random.Int63n(int64(s.pace))))
		}
	}
}

func (s *stream) create(w *rawWatch) error {
	q := &pb.WatchCreateRequest{Key: []byte(w.request.Key), RangeEnd: []byte(w.request.End),
		StartRevision: w.request.Start, PrevKv: w.request.Prev, WatchId: w.id, Fragment: w.fragment,
		ProgressNotify: w.notify}
	if w.request.NoPut {
		q.Filters = append(q.Filters, pb.WatchCreateRequest_NOPUT)
	}
	if w.request.NoDelete {
		q.Filters = append(q.Filters, pb.WatchCreateRequest_NODELETE)
	}
	s.asked = append(s.asked, w)
	return s.call.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: q}})
}

func (s *stream) take(answer *pb.WatchResponse) error {
	torn := s.partial != nil && (answer.WatchId != s.partial.WatchId || answer.Created || answer.Canceled)
	if torn {
		s.fail("%s: watch %d came between fragments of %d", s.name, answer.WatchId, s.partial.WatchId)
		s.partial = nil
	}
	if answer.Created {
		s.takeCreated(answer)
		return s.disturb()
	}
	if s.partial != nil {
		answer.Events = append(s.partial.Events, answer.Events...)
	}
	if s.partial = nil; answer.Fragment {
		s.partial = answer
		s.fragments++
		return nil
	}
	if s.earlyMarks && !answer.Canceled && len(answer.Events) == 0 {
		return nil
	}
	if answer.WatchId == -1 && s.lateAnswers && s.renewed {
		return nil
	}
	if answer.WatchId == -1 {
		for _, w := range s.live {
			w.write(responseOf(answer))
		}
		return nil
	}
	w := s.live[answer.WatchId]
	if w == nil && s.lateAnswers {
		return nil
	}
	if w == nil {
		s.fail("%s: an answer for unknown watch %d", s.name, answer.WatchId)
		return nil
	}
	w.write(responseOf(answer))
	if answer.Canceled {
		return s.takeCanceled(answer, w)
	}
	return s.disturb()
}

func (s *stream) takeCreated(answer *pb.WatchResponse) {
	if len(s.asked) == 0 {
		s.fail("%s: created, but not requested", s.name)
		return
	}
	w := s.asked[0]
	s.asked = s.asked[1:]
	switch {
	case answer.Canceled:
		s.fail("%s: refused: %s", s.name, answer.CancelReason)
	case w.id != 0 && answer.WatchId != w.id:
		s.fail("%s: requested ID %d, got %d", s.name, w.id, answer.WatchId)
	case s.live[answer.WatchId] != nil:
		s.fail("%s: ID %d is in use", s.name, answer.WatchId)
	default:
		s.live[answer.WatchId] = w
		w.created(answer.Header.Revision)
	}
}

// takeCanceled creates a compacted watch again at the compaction, and replaces any other by a new one.
func (s *stream) takeCanceled(answer *pb.WatchResponse, w *rawWatch) error {
	delete(s.live, answer.WatchId)
	s.renewed = true
	if s.lateAnswers {
		w.id = 0
	}
	if answer.CompactRevision > 0 {
		w.request = w.resume()
		return s.create(w)
	}
	next := *w
	next.book = s.open(s.name+" again", true)
	next.begin(w.request, s.known())
	for n := range s.watch {
		if s.watch[n] == w {
			s.watch[n] = &next
		}
	}
	return s.create(&next)
}

// disturb sometimes requests progress or cancels a watch.
func (s *stream) disturb() error {
	switch s.random.Intn(40) {
	case 0:
		if s.lateAnswers && len(s.asked) > 0 {
			break
		}
		return s.call.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{}}})
	case 1:
		for id, w := range s.live {
			if !s.churn || s.settling.Load() || w.gone() {
				break
			}
			w.abandon()
			return s.call.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
				CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
		}
	}
	return nil
}

func (b *book) gone() bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	return !b.recording.Complete
}

func responseOf(answer *pb.WatchResponse) Response {
	response := Response{Revision: answer.Header.GetRevision(), Canceled: answer.Canceled,
		Compacted: answer.CompactRevision,
		Progress:  len(answer.Events) == 0 && !answer.Canceled && !answer.Created}
	for _, event := range answer.Events {
		response.Events = append(response.Events, eventOf(event))
	}
	return response
}
