package watch

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// recorder holds what all watches of one run receive. Its lock guards all recordings.
type recorder struct {
	lock     sync.Mutex
	books    []*book
	failures []string
	revision int64          // the highest that was acknowledged to any writer
	settling atomic.Bool    // no more watches are canceled and created
	done     sync.WaitGroup // the watches
	users    sync.WaitGroup // writers and readers
}

// book is one recording in progress.
type book struct {
	*recorder
	recording Recording
}

func (r *recorder) open(name string, complete bool) *book {
	b := &book{recorder: r, recording: Recording{Name: name, Complete: complete}}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.books = append(r.books, b)
	return b
}

func (r *recorder) fail(format string, args ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(r.failures) < faultsMax {
		r.failures = append(r.failures, fmt.Sprintf(format, args...))
	}
}

func (r *recorder) learn(revision int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.revision = max(r.revision, revision)
}

// Known is the highest revision that any client has learned.
func (r *recorder) Known() int64 { return r.known() }

func (r *recorder) known() int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.revision
}

func (b *book) leg() *Leg { return &b.recording.Legs[len(b.recording.Legs)-1] }

func (b *book) begin(request Request, known int64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.recording.Legs = append(b.recording.Legs, Leg{Request: request, Known: known})
}

// resume begins the next leg at the position of this one and returns its request.
func (b *book) resume() Request {
	b.lock.Lock()
	defer b.lock.Unlock()
	leg := b.leg()
	request := leg.Request
	n := len(leg.Responses)
	switch {
	case n > 0 && leg.Responses[n-1].Compacted > 0:
		request.Start = leg.Responses[n-1].Compacted
	case request.Start == 0 && leg.Created == 0:
	default:
		request.Start = leg.next()
	}
	b.recording.Legs = append(b.recording.Legs, Leg{Request: request, Known: b.revision})
	return request
}

func (b *book) created(revision int64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.leg().Created == 0 {
		b.leg().Created = revision
	}
}

func (b *book) write(response Response) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.leg().Responses = append(b.leg().Responses, response)
}

// seen is the revision of the newest event in the book.
func (b *book) seen() (newest int64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for n := len(b.recording.Legs) - 1; n >= 0; n-- {
		responses := b.recording.Legs[n].Responses
		for m := len(responses) - 1; m >= 0; m-- {
			if events := responses[m].Events; len(events) > 0 {
				return events[len(events)-1].KV.Mod
			}
		}
	}
	return 0
}

// abandon marks a recording that its user canceled, so that it need not reach the end of the history.
func (b *book) abandon() {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.recording.Complete = false
}

func eventOf(e *mvccpb.Event) Event {
	event := Event{Delete: e.Type == mvccpb.Event_DELETE, KV: kvOf(e.Kv)}
	if e.PrevKv != nil {
		prev := kvOf(e.PrevKv)
		event.Prev = &prev
	}
	return event
}

func kvOf(kv *mvccpb.KeyValue) KV {
	return KV{string(kv.Key), string(kv.Value), kv.CreateRevision, kv.ModRevision, kv.Version}
}

func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(65535), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

func newClient(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

// watchClient watches with the official client, which resumes by itself, until ctx ends.
func (r *recorder) watchClient(ctx context.Context, client *clientv3.Client, name string,
	request Request, random *rand.Rand) {
	defer r.done.Done()
	b := r.open(name, true)
	options := clientOptions(request, random)
	// After a reconnection the client requests the revision of the created header again.
	b.begin(request, r.known()-1)
	for {
		for answer := range client.Watch(ctx, request.Key, append(options, clientv3.WithRev(request.Start))...) {
			b.clientAnswer(&answer)
		}
		if ctx.Err() != nil {
			return
		}
		b.lock.Lock()
		responses := b.leg().Responses
		compacted := len(responses) > 0 && responses[len(responses)-1].Compacted > 0
		b.lock.Unlock()
		if !compacted {
			r.fail("%s: the channel was closed", name)
			return
		}
		request = b.resume()
	}
}

func clientOptions(request Request, random *rand.Rand) []clientv3.OpOption {
	options := []clientv3.OpOption{clientv3.WithCreatedNotify()}
	if request.End == "\x00" {
		options = append(options, clientv3.WithFromKey())
	} else if request.End != "" {
		options = append(options, clientv3.WithRange(request.End))
	}
	for option, on := range map[*clientv3.OpOption]bool{
		ptr(clientv3.WithPrevKV()):         request.Prev,
		ptr(clientv3.WithFilterPut()):      request.NoPut,
		ptr(clientv3.WithFilterDelete()):   request.NoDelete,
		ptr(clientv3.WithFragment()):       random.Intn(2) == 0,
		ptr(clientv3.WithProgressNotify()): random.Intn(2) == 0,
	} {
		if on {
			options = append(options, *option)
		}
	}
	return options
}

func ptr[T any](value T) *T { return &value }

func (b *book) clientAnswer(answer *clientv3.WatchResponse) {
	if answer.Created {
		b.created(answer.Header.Revision)
		return
	}
	response := Response{Revision: answer.Header.Revision, Progress: answer.IsProgressNotify(),
		Canceled: answer.Canceled, Compacted: answer.CompactRevision}
	for _, event := range answer.Events {
		response.Events = append(response.Events, eventOf((*mvccpb.Event)(event)))
	}
	b.write(response)
}

// currentRevision reads the revision from the server.
func currentRevision(ctx context.Context, conn *grpc.ClientConn) (int64, error) {
	answer, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("x")}, grpc.WaitForReady(true))
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}
