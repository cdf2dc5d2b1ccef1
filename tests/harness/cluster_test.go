package harness

import (
	"testing"
)

// Members lose and find a leader, and a link carries nothing while it is cut.
func TestClusterObeys(t *testing.T) {
	for _, binary := range []string{Peer(), Debian} {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := StartCluster(t, ClusterOptions{Binary: binary})
			leader := c.AwaitLeader()
			leader.Kill()
			if next := c.AwaitLeader(); next == leader {
				t.Errorf("%s leads after it was killed", next.Name)
			}
			other := c.Follower()
			if err := other.Pause(); err != nil {
				t.Fatal(err)
			}
			c.AwaitLoss(c.running()[0])
			c.Recover()
			for _, m := range c.Members {
				if status := c.Status(m); status == nil || status.Leader == 0 {
					t.Errorf("%s: %v", m.Name, status)
				}
			}
		})
	}
}
