package watch

import (
	"context"
	"testing"
	"time"

	"vigil/tests/harness"
)

// A write that is under way when the writers are stopped becomes a part of the history that is checked, so its
// events are waited for.
func TestFinishWaitsForWritesUnderWay(t *testing.T) {
	f := newFixture(t)
	s := NewSession(t, Place{Addr: f.server.Addr, Etcd: harness.IsEtcd(harness.Subject())})
	s.Watch(s.place, Load{Streams: 1, Each: 4})
	relay, err := harness.NewRelay(f.server.Addr)
	f.must(err)
	t.Cleanup(relay.Close)
	ctx, stop := context.WithCancel(f.ctx)
	s.Write(ctx, f.server.Addr, time.Millisecond) // for progress marks, too
	for range 8 {
		s.Write(ctx, relay.Addr, 20*time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	relay.Stall()
	time.Sleep(100 * time.Millisecond) // most of them have sent the next request
	time.AfterFunc(time.Second, relay.Restore)
	stop()
	s.Finish()
	time.Sleep(2 * time.Second)
	if now, err := currentRevision(f.ctx, f.conn); err != nil || now != s.history().Last() {
		t.Errorf("the history that was checked ends at %d, and the server is at %d: %v", s.history().Last(), now, err)
	}
}
