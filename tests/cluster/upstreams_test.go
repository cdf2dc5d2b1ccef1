package cluster

import (
	"fmt"
	"strings"
	"testing"

	"vigil/tests/harness"
)

// The page of versions is the one of a member, and the metrics show the member at each endpoint.
func TestVersionsAndUpstreams(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		if !harness.IsVigil() {
			t.Skip("the metrics are Vigil's")
		}
		f := newPlain(t, binary)
		f.eventually("the page of versions is that of a member", func() bool {
			_, text := page(f.front.URL + "/version")
			_, want := page(f.cluster.Members[0].URL + "/version") // its last part may change after the start
			return text == want
		})
		shows := func(member *harness.Member, metric string, parts ...string) func() bool {
			return func() bool {
				_, text := page(f.front.URL + "/metrics")
				for _, line := range strings.Split(text, "\n") {
					if strings.HasPrefix(line, fmt.Sprintf("%s{endpoint=%q", metric, member.RelayURL())) {
						found := 0
						for _, part := range parts {
							if strings.Contains(line, part) {
								found++
							}
						}
						return found == len(parts)
					}
				}
				return false
			}
		}
		leader, follower := f.cluster.AwaitLeader(), f.cluster.Follower()
		f.eventually("the leader is shown", shows(leader, "vigil_cluster_upstream_info", `role="leader"`,
			fmt.Sprintf("member=\"%x\"", statusOf(f, leader).Header.MemberId),
			fmt.Sprintf("version=%q", statusOf(f, leader).Version)))
		for _, member := range f.cluster.Members {
			f.eventually("a member is up", shows(member, "vigil_cluster_upstream_up", "} 1"))
		}
		follower.Kill()
		f.eventually("a member is down", shows(follower, "vigil_cluster_upstream_up", "} 0"))
		f.cluster.Recover()
		f.eventually("a member is up again", shows(follower, "vigil_cluster_upstream_up", "} 1"))
	})
}
