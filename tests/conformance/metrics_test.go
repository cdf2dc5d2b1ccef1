package conformance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// Metrics that etcd's dashboards and alerts use, and others that are often used. A label in braces must exist.
var dashboards = strings.Fields(`
	counter:grpc_server_handled_total{grpc_code,grpc_method,grpc_service,grpc_type}
	counter:grpc_server_started_total{grpc_method,grpc_service,grpc_type}
	counter:grpc_server_msg_received_total{grpc_method,grpc_service,grpc_type}
	counter:grpc_server_msg_sent_total{grpc_method,grpc_service,grpc_type}
	gauge:etcd_server_has_leader
	gauge:etcd_server_is_leader
	counter:etcd_server_leader_changes_seen_total
	gauge:etcd_server_id{server_id}
	gauge:etcd_server_version{server_version}
	gauge:etcd_cluster_version{cluster_version}
	gauge:etcd_server_quota_backend_bytes
	gauge:etcd_server_proposals_committed_total
	gauge:etcd_server_proposals_applied_total
	gauge:etcd_server_proposals_pending
	counter:etcd_server_proposals_failed_total
	counter:etcd_server_slow_apply_total
	counter:etcd_server_heartbeat_send_failures_total
	counter:etcd_server_slow_read_indexes_total
	gauge:etcd_mvcc_db_total_size_in_bytes
	gauge:etcd_mvcc_db_total_size_in_use_in_bytes
	counter:etcd_mvcc_put_total
	counter:etcd_mvcc_delete_total
	counter:etcd_mvcc_range_total
	counter:etcd_mvcc_txn_total
	histogram:etcd_disk_wal_fsync_duration_seconds
	histogram:etcd_disk_backend_commit_duration_seconds
	histogram:etcd_disk_backend_defrag_duration_seconds
	gauge:etcd_disk_defrag_inflight
	counter:etcd_network_client_grpc_received_bytes_total
	counter:etcd_network_client_grpc_sent_bytes_total
	gauge:etcd_debugging_mvcc_keys_total
	gauge:etcd_debugging_mvcc_watcher_total
	gauge:etcd_debugging_mvcc_watch_stream_total
	gauge:etcd_debugging_mvcc_slow_watcher_total
	counter:etcd_debugging_mvcc_events_total
	gauge:etcd_debugging_mvcc_pending_events_total
	gauge:etcd_debugging_mvcc_current_revision
	gauge:etcd_debugging_mvcc_compact_revision
	counter:etcd_debugging_lease_granted_total
	counter:etcd_debugging_lease_revoked_total
	gauge:process_resident_memory_bytes
	gauge:process_virtual_memory_bytes
	gauge:process_open_fds
	gauge:process_max_fds
	gauge:process_start_time_seconds
	counter:process_cpu_seconds_total
	gauge:os_fd_used
	gauge:os_fd_limit
`)

// ofMembers are those that a server in front of a cluster does not have: only a member can know them.
var ofMembers = []string{"etcd_server_heartbeat_send_failures_total", "etcd_server_slow_read_indexes_total"}

// page reads /metrics with Prometheus' own parser, which rejects whatever Prometheus would reject.
func (f *fixture) page() (map[string]*dto.MetricFamily, []byte) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, f.server.URL+"/metrics", nil)
	f.must(err)
	answer, err := http.DefaultClient.Do(request)
	f.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	f.must(err)
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		f.Errorf("status %d, content type %q", answer.StatusCode, got)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	f.must(err)
	return families, text
}

func (f *fixture) traffic() {
	f.Helper()
	watch := f.watching("k")
	for range 3 {
		_, err := f.client.Put(f.ctx, "k", "v")
		f.must(err)
	}
	f.receive(watch)
	_, err := f.client.Get(f.ctx, "k")
	f.must(err)
	_, err = f.client.Delete(f.ctx, "k")
	f.must(err)
	_, err = f.client.Txn(f.ctx).Then(clientv3.OpPut("t", "v")).Commit()
	f.must(err)
	_, err = f.client.Put(f.ctx, "", "no key")
	if err == nil {
		f.Error("a put without a key was accepted")
	}
	f.lease(100)
}

func TestMetricsHaveTheNamesOfDashboards(t *testing.T) {
	f := newFixture(t)
	f.traffic()
	families, _ := f.page()
	for _, row := range dashboards {
		kind, rest, _ := strings.Cut(row, ":")
		name, labels, _ := strings.Cut(strings.TrimSuffix(rest, "}"), "{")
		if harness.InFront() && slices.Contains(ofMembers, name) {
			continue
		}
		family := families[name]
		if family == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		want(f, name+"'s type", strings.ToLower(family.GetType().String()), kind)
		var got []string
		for _, pair := range family.Metric[0].Label {
			got = append(got, pair.GetName())
		}
		slices.Sort(got)
		want(f, name+"'s labels", strings.Join(got, ","), labels)
	}
}

func TestMetricsPageIsWellFormed(t *testing.T) {
	f := newFixture(t)
	f.traffic()
	families, text := f.page()
	seen := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		name, _, _ := strings.Cut(line, " ")
		if brace := strings.LastIndex(line, "}"); brace >= 0 {
			name = line[:brace+1]
		}
		if !strings.HasPrefix(line, "#") && line != "" && seen[name] {
			t.Errorf("duplicate: %s", name)
		}
		seen[name] = true
	}
	for name, family := range families {
		if family.GetHelp() == "" || family.GetType() == dto.MetricType_UNTYPED {
			t.Errorf("%s has help %q and type %v", name, family.GetHelp(), family.GetType())
		}
		if problem := histogramProblem(family); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// histogramProblem returns what is wrong with a histogram: its buckets must ascend up to its count.
func histogramProblem(family *dto.MetricFamily) string {
	if family.GetType() != dto.MetricType_HISTOGRAM {
		return ""
	}
	for _, metric := range family.Metric {
		buckets := metric.Histogram.Bucket
		for i := 1; i < len(buckets); i++ {
			if buckets[i].GetUpperBound() <= buckets[i-1].GetUpperBound() ||
				buckets[i].GetCumulativeCount() < buckets[i-1].GetCumulativeCount() {
				return "buckets out of order"
			}
		}
		if len(buckets) == 0 || buckets[len(buckets)-1].GetCumulativeCount() != metric.Histogram.GetSampleCount() {
			return "the last bucket is not the count"
		}
	}
	return ""
}

// value adds up the series of a family whose labels include these.
func value(families map[string]*dto.MetricFamily, name string, labels map[string]string) (sum float64) {
	for _, metric := range families[name].GetMetric() {
		matching := 0
		for _, pair := range metric.Label {
			if labels[pair.GetName()] == pair.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}

func TestMetricsCount(t *testing.T) {
	harness.OnlyAlone(t, "leases are counted by the members")
	f := newFixture(t)
	before, _ := f.page()
	f.traffic()
	after, _ := f.page()
	handled := func(method, code string) map[string]string {
		return map[string]string{"grpc_method": method, "grpc_code": code}
	}
	for _, row := range []struct {
		name   string
		labels map[string]string
		by     float64
	}{
		{"etcd_mvcc_put_total", nil, 4},
		{"etcd_mvcc_delete_total", nil, 1},
		{"etcd_debugging_mvcc_keys_total", nil, 1},
		{"etcd_debugging_mvcc_current_revision", nil, 5},
		{"etcd_debugging_mvcc_watcher_total", nil, 1},
		{"etcd_debugging_mvcc_watch_stream_total", nil, 1},
		{"etcd_debugging_lease_granted_total", nil, 1},
		{"grpc_server_handled_total", handled("Put", "OK"), 3},
		{"grpc_server_handled_total", handled("Put", "InvalidArgument"), 1},
		{"grpc_server_handled_total", handled("Txn", "OK"), 1},
		{"grpc_server_started_total", map[string]string{"grpc_method": "Watch"}, 1},
	} {
		got := value(after, row.name, row.labels) - value(before, row.name, row.labels)
		if got != row.by {
			t.Errorf("%s%v grew by %v, want %v", row.name, row.labels, got, row.by)
		}
	}
	if value(after, "etcd_mvcc_db_total_size_in_bytes", nil) <= 0 || value(after, "etcd_server_has_leader", nil) != 1 {
		t.Error("no size, or no leader")
	}
}

// Every page is complete while another client writes.
func TestMetricsUnderLoad(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			f.client.Put(ctx, "k", "v")
		}
	}()
	for range 50 {
		families, _ := f.page()
		for name, family := range families {
			if problem := histogramProblem(family); problem != "" {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	cancel()
	<-done
}
