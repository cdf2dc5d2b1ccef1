package conformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// quiet is how long a watch must be silent to pass wantQuiet.
const quiet = 300 * time.Millisecond

// onlyVigil skips a test of behaviour that a real etcd does not have.
func onlyVigil(f *fixture) {
	if harness.IsEtcd(harness.Subject()) {
		f.Skip("not a property of etcd")
	}
}

// events writes a response as "PUT key=value@mod DELETE key@mod", with "<previous" if it has one.
func events(r clientv3.WatchResponse) string {
	var text []string
	for _, event := range r.Events {
		line := fmt.Sprintf("%s %s@%d", event.Type, event.Kv.Key, event.Kv.ModRevision)
		if event.Type == clientv3.EventTypePut {
			line = fmt.Sprintf("PUT %s=%s@%d", event.Kv.Key, event.Kv.Value, event.Kv.ModRevision)
		}
		if event.PrevKv != nil {
			line += fmt.Sprintf("<%s@%d", event.PrevKv.Value, event.PrevKv.ModRevision)
		}
		text = append(text, line)
	}
	return strings.Join(text, " ")
}

// receive waits for the next response.
func (f *fixture) receive(watch clientv3.WatchChan) clientv3.WatchResponse {
	f.Helper()
	select {
	case r, ok := <-watch:
		if !ok {
			f.Fatal("the watch was closed")
		}
		return r
	case <-f.ctx.Done():
		f.Fatal("no response in time")
	}
	panic("unreachable")
}

// wantEvents receives as many responses as the events need, however they are divided.
func (f *fixture) wantEvents(watch clientv3.WatchChan, list ...string) {
	f.Helper()
	var got []string
	for len(strings.Join(got, " ")) < len(strings.Join(list, " ")) {
		r := f.receive(watch)
		f.must(r.Err())
		if len(r.Events) > 0 {
			got = append(got, events(r))
		}
	}
	want(f, "events", strings.Join(got, " "), strings.Join(list, " "))
}

func (f *fixture) wantQuiet(watch clientv3.WatchChan) {
	f.Helper()
	select {
	case r, ok := <-watch:
		f.Errorf("unexpected: %q (open %v, error %v)", events(r), ok, r.Err())
	case <-time.After(quiet):
	}
}

func (f *fixture) wantClosed(watch clientv3.WatchChan) {
	f.Helper()
	select {
	case r, ok := <-watch:
		if ok {
			f.Errorf("still open: %q", events(r))
		}
	case <-f.ctx.Done():
		f.Error("still open")
	}
}

// watching starts a watch from now and returns when it has been created.
func (f *fixture) watching(key string, options ...clientv3.OpOption) clientv3.WatchChan {
	f.Helper()
	watch := f.client.Watch(f.ctx, key, append(options, clientv3.WithCreatedNotify())...)
	want(f, "created", f.receive(watch).Created, true)
	return watch
}

// call is a Watch call without clientv3, which hides most of the responses.
type call struct {
	*fixture
	stream    pb.Watch_WatchClient
	responses chan *pb.WatchResponse
	err       error // why responses was closed
	cancel    context.CancelFunc
}

func (f *fixture) call() *call {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	stream, err := pb.NewWatchClient(f.raw()).Watch(ctx)
	f.must(err)
	c := &call{f, stream, make(chan *pb.WatchResponse, 100000), nil, cancel}
	go func() {
		defer close(c.responses)
		for {
			r, err := stream.Recv()
			if err != nil {
				c.err = err
				return
			}
			c.responses <- r
		}
	}()
	return c
}

func (c *call) create(r *pb.WatchCreateRequest) {
	c.Helper()
	c.must(c.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}))
}

func (c *call) cancelWatch(id int64) {
	c.Helper()
	c.must(c.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}))
}

func (c *call) progress() {
	c.Helper()
	c.must(c.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
		ProgressRequest: &pb.WatchProgressRequest{}}}))
}

func (c *call) next() *pb.WatchResponse {
	c.Helper()
	select {
	case r, ok := <-c.responses:
		if !ok {
			c.Fatalf("the call has ended: %v", c.err)
		}
		return r
	case <-c.ctx.Done():
		c.Fatal("no response in time")
	}
	panic("unreachable")
}

// describe writes a response without its header.
func describe(r *pb.WatchResponse) string {
	text := fmt.Sprintf("%d", r.WatchId)
	for _, flag := range []struct {
		name string
		set  bool
	}{{"created", r.Created}, {"canceled", r.Canceled}, {"fragment", r.Fragment}} {
		if flag.set {
			text += " " + flag.name
		}
	}
	if r.CompactRevision != 0 {
		text += fmt.Sprintf(" compacted %d", r.CompactRevision)
	}
	if r.CancelReason != "" {
		text += " because " + r.CancelReason
	}
	if len(r.Events) > 0 {
		text += fmt.Sprintf(" events %d", len(r.Events))
	}
	return text
}

func (c *call) want(text string) *pb.WatchResponse {
	c.Helper()
	r := c.next()
	want(c.fixture, "response", describe(r), text)
	return r
}

func (c *call) wantQuiet() {
	c.Helper()
	select {
	case r, ok := <-c.responses:
		c.Errorf("unexpected: %v (open %v, error %v)", r, ok, c.err)
	case <-time.After(quiet):
	}
}

// bridge forwards connections to the server until cut closes them.
type bridge struct {
	url      string
	listener net.Listener
	lock     sync.Mutex
	open     []net.Conn
}

func newBridge(f *fixture) *bridge {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	f.must(err)
	b := &bridge{url: "http://" + listener.Addr().String(), listener: listener}
	f.Cleanup(func() { listener.Close(); b.cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", f.server.Addr)
			if err != nil {
				client.Close()
				continue
			}
			b.lock.Lock()
			b.open = append(b.open, client, server)
			b.lock.Unlock()
			go func() { io.Copy(server, client); server.Close() }()
			go func() { io.Copy(client, server); client.Close() }()
		}
	}()
	return b
}

func (b *bridge) cut() {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, conn := range b.open {
		conn.Close()
	}
	b.open = nil
}
