package cluster

import (
	"fmt"
	"os/exec"
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

// The metrics of leadership are what the cluster says, and what only a member can know is missing.
func TestMetricsOfLeadership(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the metrics are Vigil's")
	}
	f := newPlain(t, harness.Peer())
	leader := f.cluster.AwaitLeader()
	f.awaitMetric("etcd_server_has_leader", "1")
	f.awaitMetric("etcd_server_leader_changes_seen_total", "1")
	f.eventually("the followed member's role", func() bool {
		_, text := page(f.front.URL + "/metrics")
		is := strings.Contains(text, fmt.Sprintf("etcd_server_id{server_id=\"%x\"}", statusOf(f, leader).Header.MemberId))
		return strings.Contains(text, "\netcd_server_is_leader 1\n") == is
	})
	if f.metricText("etcd_server_proposals_applied_total") == "0" {
		t.Error("the cluster's log is empty")
	}
	for _, name := range []string{"etcd_server_heartbeat_send_failures_total", "etcd_network_known_peers"} {
		if _, text := page(f.front.URL + "/metrics"); strings.Contains(text, name) {
			t.Errorf("%s is shown", name)
		}
	}
	leader.Kill()
	f.cluster.AwaitLeader()
	f.awaitMetric("etcd_server_leader_changes_seen_total", "2")
	for _, member := range f.cluster.Members {
		if member.Running() {
			member.Kill()
			break
		}
	}
	f.awaitMetric("etcd_server_has_leader", "0")
	f.awaitMetric("etcd_server_is_leader", "0")
	f.cluster.Start()
	f.awaitMetric("etcd_server_has_leader", "1")
}

// The commands that examine a server know that it is in front of a cluster, also when the cluster does not answer.
func TestDoctorAndTop(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{})
	member := f.cluster.Members[0]
	shows := func(parts ...string) func() bool {
		return func() bool {
			command := exec.Command(harness.Subject(), append([]string{"--endpoints", f.front.Addr, "--command-timeout", "2s"},
				strings.Fields(parts[0])...)...)
			text, _ := command.CombinedOutput() // it fails if something is bad
			for _, part := range parts[1:] {
				if !strings.Contains(string(text), part) {
					return false
				}
			}
			return true
		}
	}
	f.eventually("a healthy front", shows("doctor", "mirror: the mirror has revision", "0 behind the cluster",
		"upstream: "+member.RelayURL()+" answers, leader, etcd 3.", "; it is followed"))
	f.eventually("a healthy front", shows("top --once", "Mirror    revision", "Upstream  "+member.RelayURL(), " leader "))
	f.must(member.Pause())
	defer member.Continue()
	f.eventually("a cut-off front", shows("doctor", "answer: it is not ready: [-]linearizable_read failed",
		"mirror: no member of the cluster is followed", member.RelayURL()+" does not answer; it was the leader"))
	f.eventually("a cut-off front", shows("top --once", "NO MEMBER IS FOLLOWED", "DOES NOT ANSWER"))
	member.Continue()
	f.eventually("a healthy front again", shows("doctor", "; it is followed"))
}
