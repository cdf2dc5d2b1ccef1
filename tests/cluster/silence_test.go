package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// A cluster that accepts everything and answers nothing: probes say so at once, calls after some seconds, and
// the metrics do not claim that the mirror is up to date.
func TestSilentCluster(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: []string{"--listen-kube-urls", kube}})
	f.awaitPage(f.front.URL+"/readyz", 200, "ok")
	f.awaitPage(kube+"/readyz", 200, "ok")
	f.awaitPage(kube+"/api/v1/configmaps", 200, "items") // the first request makes the default namespaces
	f.put(f.via, "a", "x")
	f.awaitMetric("vigil_cluster_mirror_lag_revisions", "0") // the put is answered before the mirror has seen it
	member := f.cluster.Members[0]
	f.must(member.Pause())
	defer member.Continue()

	var wait sync.WaitGroup
	defer wait.Wait()
	within := func(what string, limit time.Duration, call func()) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			began := time.Now()
			call()
			if took := time.Since(began); took > limit {
				t.Errorf("%s took %v", what, took)
			}
		}()
	}
	const calls = 12 * time.Second // 8 s, and a busy machine
	kv := pb.NewKVClient(f.dial(f.front.Addr))
	within("a put", calls, func() {
		_, err := kv.Put(f.ctx, &pb.PutRequest{Key: []byte("a")})
		f.wantUnavailable("a put", err, "the cluster", f.cluster.Endpoints())
	})
	within("a get", calls, func() {
		_, err := kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a")})
		f.wantUnavailable("a get", err, "the cluster")
	})
	within("a list", calls, func() {
		if code, text := page(kube + "/api/v1/configmaps"); code != 503 || !strings.Contains(text, "the cluster") {
			t.Errorf("a list: %v %s", code, text)
		}
	})

	// From the first moment of the stall until it is noticed.
	probes := []struct {
		url   string
		part  string // if it is not well
		alive bool   // and stays so
	}{
		{f.front.URL + "/health", "the cluster", false},
		{f.front.URL + "/health?serializable=true", "", true},
		{f.front.URL + "/readyz", "[+]serializable_read ok\n[-]linearizable_read failed: ", false},
		{f.front.URL + "/readyz?verbose", "[+]serializable_read ok\n[-]linearizable_read failed: ", false},
		{f.front.URL + "/readyz/linearizable_read", "[-]linearizable_read failed: ", false},
		{f.front.URL + "/readyz/serializable_read", "", true},
		{f.front.URL + "/livez", "", true},
		{f.front.URL + "/livez?verbose", "", true},
		{kube + "/livez", "", true},
		{kube + "/livez?verbose", "", true},
	}
	noticed := func() bool { return f.metricText("vigil_cluster_connected") == "0" }
	for round := 0; round == 0 || !noticed(); round++ {
		for _, probe := range probes {
			within(probe.url, 4*time.Second, func() { // 0.8 s, and a busy machine; it was 8 to 11 s
				code, text := page(probe.url)
				if (code == 200) != probe.alive || !strings.Contains(text, probe.part) {
					t.Errorf("%s: %v %s", probe.url, code, text)
				}
			})
		}
		time.Sleep(time.Second)
	}
	wait.Wait()
	f.awaitPage(kube+"/readyz", 500, "[-]etcd failed: ")
	f.awaitPage(f.front.URL+"/readyz/mirror", 503, "of the cluster")
	f.awaitMetric("vigil_cluster_mirror_lag_revisions", "NaN")
	f.awaitMetric("vigil_cluster_synced", "0")
	ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
	defer cancel()
	_, err := f.via.Get(ctx, "a", clientv3.WithSerializable())
	f.must(err)

	member.Continue()
	f.awaitPage(f.front.URL+"/readyz", 200, "ok")
	f.awaitMetric("vigil_cluster_synced", "1")
}

// awaitMetric waits until a metric has the value.
func (f *fixture) awaitMetric(name, want string) {
	f.Helper()
	f.eventually(name+" to be "+want, func() bool { return f.metricText(name) == want })
}

// metricText is the value of a metric without labels, as the page has it.
func (f *fixture) metricText(name string) string {
	f.Helper()
	_, text := page(f.front.URL + "/metrics")
	_, text, _ = strings.Cut(text, "\n"+name+" ")
	value, _, _ := strings.Cut(text, "\n")
	return value
}
