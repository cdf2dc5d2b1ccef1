package cluster

import (
	"testing"
	"time"

	"vigil/tests/harness"
)

// Every test here records what clients of two fronts and of the members write, read and receive while
// something fails. Afterwards nothing acknowledged is lost, every read shows the state of its revision
// and all that was known before it began, and every watch keeps the six guarantees.

func recorded(t *testing.T, fault func(s *session)) {
	t.Helper()
	onEach(t, func(t *testing.T, binary string) {
		s := newSession(t, binary)
		s.record(func() { fault(s) })
	})
}

func TestNothingFails(t *testing.T) {
	recorded(t, func(s *session) {})
}

func TestLeadersAreKilled(t *testing.T) {
	recorded(t, func(s *session) {
		for range 3 {
			leader := s.cluster.AwaitLeader()
			leader.Kill()
			s.awaitWrites(20)
			leader.Begin()
			leader.Ready()
		}
	})
}

func TestMinorityIsLost(t *testing.T) {
	recorded(t, func(s *session) {
		for _, member := range s.cluster.Members {
			member.Kill()
			s.awaitWrites(30)
			member.Begin()
			member.Ready()
		}
	})
}

func TestMajorityIsLost(t *testing.T) {
	recorded(t, func(s *session) {
		lost := []*harness.Member{s.cluster.AwaitLeader(), s.cluster.Follower()}
		for _, member := range lost {
			member.Kill()
		}
		for _, member := range s.cluster.Members {
			if member.Running() {
				s.cluster.AwaitLoss(member)
			}
		}
		time.Sleep(time.Second) // for writes and reads without a quorum
		s.cluster.Start()
		s.awaitWrites(50)
	})
}

// A member that is paused is far behind when it continues.
func TestMembersFallBehind(t *testing.T) {
	recorded(t, func(s *session) {
		for _, member := range s.cluster.Members[1:] {
			if err := member.Pause(); err != nil {
				s.Fatal(err)
			}
			s.awaitWrites(200)
			member.Continue()
			s.awaitWrites(20)
		}
	})
}

func TestLinksAreCut(t *testing.T) {
	recorded(t, func(s *session) {
		for _, member := range s.cluster.Members {
			member.Relay.Cut()
			s.awaitWrites(50)
			member.Relay.Restore()
		}
		for _, member := range s.cluster.Members {
			member.Relay.Cut()
		}
		s.awaitWrites(100) // by the client of a member
		for _, member := range s.cluster.Members {
			member.Relay.Restore()
		}
		s.awaitWrites(100)
	})
}

func TestLinksStall(t *testing.T) {
	recorded(t, func(s *session) {
		for _, member := range s.cluster.Members {
			member.Relay.Stall()
			s.awaitWrites(100)
			member.Relay.Restore()
		}
	})
}

func TestFrontsAreKilledAndPaused(t *testing.T) {
	recorded(t, func(s *session) {
		front := s.fronts[0]
		front.Kill()
		s.awaitWrites(50)
		front.Start()
		s.awaitWrites(50)
		front.Stop()
		s.awaitWrites(50)
		front.Erase()
		front.Start()
		s.awaitWrites(50)
		front.Pause()
		s.awaitWrites(300)
		front.Continue()
		s.awaitWrites(50)
	})
}

func TestMembersAreDefragmented(t *testing.T) {
	recorded(t, func(s *session) {
		for _, member := range s.cluster.Members {
			defragment(s, member)
			s.awaitWrites(20)
		}
	})
}

// Watches that catch up while the history is compacted receive all of it or the compact
// revision.
func TestCompactionDuringCatchUps(t *testing.T) {
	each := 150 // of four streams, five times: thousands of watches
	if testing.Short() {
		each = 100
	}
	recorded(t, func(s *session) {
		s.awaitWrites(500)
		for range 5 {
			s.catchUp(4, each)
			s.Compact()
			s.awaitWrites(20)
		}
	})
}
