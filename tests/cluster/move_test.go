package cluster

import (
	"testing"

	"vigil/tests/harness"
	"vigil/tests/watch"
)

// Clients that move between two fronts again and again, in the middle of their watches, lose and repeat
// nothing.
func TestClientsMoveBetweenFronts(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		s := newSession(t, binary)
		relay, err := harness.NewRelay(s.fronts[0].Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(relay.Close)
		moving := s.placeOf(relay.Addr)
		s.record(func() {
			s.Watch(moving, watch.Load{Clients: 2, Streams: 4, Each: 10})
			for n := range 8 {
				s.awaitWrites(30)
				relay.Redirect(s.fronts[(n+1)%2].Addr)
			}
			s.fronts[0].Kill()
			relay.Redirect(s.fronts[1].Addr)
			s.awaitWrites(30)
			s.fronts[0].Start()
		})
		if relay.Cuts() == 0 {
			t.Error("no client has moved")
		}
	})
}
