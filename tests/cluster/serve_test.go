package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

// page returns the status and the text of a page, or 0.
func page(url string) (int, string) {
	client := http.Client{Timeout: 20 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// awaitPage waits for a status and a part of the text.
func (f *fixture) awaitPage(url string, code int, part string) {
	f.Helper()
	f.cluster.Eventually(fmt.Sprint(url, " is ", code, " ", part), func() bool {
		now, text := page(url)
		return now == code && strings.Contains(text, part)
	})
}

// wantUnavailable compares the code of an error, and looks for parts of its text.
func (f *fixture) wantUnavailable(what string, err error, parts ...string) {
	f.Helper()
	if status.Code(err) != codes.Unavailable {
		f.Errorf("%s: %v", what, err)
	}
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(err), part) {
			f.Errorf("%s: the text lacks %q: %v", what, part, err)
		}
	}
}

// A process without a cluster serves what it can, says why it waits, and needs no restart when the
// cluster comes.
func TestStartBeforeTheCluster(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	c := harness.NewCluster(t, harness.ClusterOptions{Size: 1})
	f := &fixture{T: t, cluster: c, front: harness.NewFront(c, harness.FrontOptions{Args: []string{"--listen-kube-urls", kube}})}
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	f.ctx = ctx
	f.front.Begin()
	f.awaitPage(f.front.URL+"/livez", 200, "ok")
	f.awaitPage(kube+"/livez", 200, "ok")
	const early = "no member of the cluster can be followed yet"
	reason := fmt.Sprintf("%s (%s): ", early, c.Endpoints())
	f.awaitPage(f.front.URL+"/readyz", 503, "[-]mirror failed: "+reason)
	f.awaitPage(f.front.URL+"/health", 503, reason)
	f.awaitPage(kube+"/readyz", 500, "[-]etcd failed: "+reason)
	f.wantEarlyKube(kube)
	f.wantEarlyCalls(early)
	f.eventually("the reason is logged", func() bool { return strings.Contains(f.front.Log(), "waiting for the cluster") })

	process := f.front.Pid()
	c.Start()
	f.via, f.direct = f.client(f.front.URL), f.client(c.Members[0].URL)
	f.put(f.via, "a", "x")
	f.awaitPage(f.front.URL+"/readyz", 200, "ok")
	f.awaitPage(kube+"/readyz", 200, "ok")
	f.awaitPage(kube+"/api/v1/namespaces/default", 200, `"default"`)
	f.follow(f.via.Watch(f.ctx, "a", clientv3.WithRev(2)), 2, 2)
	if answer, err := f.via.Get(f.ctx, "a"); err != nil || answer.Count != 1 || answer.Header.ClusterId == 0 {
		t.Errorf("a get answers %v, %v", answer, err)
	}
	if f.front.Pid() != process {
		t.Error("the front was started again")
	}
}

// wantEarlyKube expects that the Kubernetes API asks a client to come back.
func (f *fixture) wantEarlyKube(kube string) {
	f.Helper()
	response, err := http.Get(kube + "/api/v1/namespaces")
	f.must(err)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != 429 || response.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), "no member of the cluster") {
		f.Errorf("an early list: %v %s", response.Status, text)
	}
}

// wantEarlyCalls expects that calls without a member fail in time, with the reason.
func (f *fixture) wantEarlyCalls(reason string) {
	f.Helper()
	conn := f.dial(f.front.Addr)
	kv := pb.NewKVClient(conn)
	endpoints := f.cluster.Endpoints()
	for _, serializable := range []bool{false, true} {
		_, err := kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a"), Serializable: serializable})
		f.wantUnavailable("range", err, reason, endpoints)
	}
	stream, err := pb.NewWatchClient(conn).Watch(f.ctx)
	f.must(err)
	f.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: []byte("a")}}}))
	_, err = stream.Recv()
	f.wantUnavailable("watch", err, reason, endpoints)
	_, err = kv.Put(f.ctx, &pb.PutRequest{Key: []byte("early"), Value: []byte("x")})
	f.wantUnavailable("put", err, "the cluster cannot be reached")
}

// A process that waits for its cluster does not log the password, and ends at once when it gets a signal.
func TestStopBeforeTheCluster(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	c := harness.NewCluster(t, harness.ClusterOptions{})
	dead := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	front := harness.NewFront(c, harness.FrontOptions{Endpoints: dead, Args: []string{"--upstream-user", "vigil:s3cret"}})
	front.Begin()
	c.Eventually("the reason is logged", func() bool {
		log := front.Log()
		return strings.Contains(log, "waiting for the cluster") && strings.Contains(log, "connection refused")
	})
	if strings.Contains(front.Log(), "s3cret") {
		t.Error("the password is in the log")
	}
	began := time.Now()
	if err := syscall.Kill(front.Pid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-front.Exited()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it has ended after %v", took)
	}
}

// The log says who is followed and why a state is read. Slow calls are not called slow applies, since nothing
// is applied here. A warm start has nothing to warn of.
func TestLog(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: []string{"--listen-kube-urls", kube,
		"--warning-apply-duration", "1us", "--warning-unary-request-duration", "1us"}})
	member := statusOf(f, f.cluster.Members[0]).Header
	f.awaitPage(kube+"/api/v1/namespaces/default", 200, "default")
	f.put(f.via, "a", "x")
	wants := []string{`"msg":"reading the state of the cluster","why":"there is no mirror yet"`,
		`"msg":"read the state of the cluster","why":"there is no mirror yet"`, `"endpoint":"127.0.0.1:`,
		fmt.Sprintf(`"member-id":"%x"`, member.MemberId), fmt.Sprintf(`"cluster-id":"%x"`, member.ClusterId), `"etcd-version":"3.`,
		`"msg":"request stats"`}
	for _, want := range wants {
		f.eventually("the log has "+want, func() bool { return strings.Contains(f.front.Log(), want) })
	}
	if strings.Contains(f.front.Log(), "apply request took too long") {
		t.Error("a forwarded call is logged as an apply")
	}
	f.front.Stop()
	f.front.Options.Args = f.front.Options.Args[:len(f.front.Options.Args)-4]
	f.front.Begin()
	f.eventually("the front is ready", func() bool {
		return strings.Contains(f.front.Log(), "following the cluster")
	})
	f.awaitPage(kube+"/api/v1/namespaces/default", 200, "default")
	f.front.Stop()
	// The cluster is too young to prove without its state that it was not restored.
	log := strings.ReplaceAll(f.front.Log(), `"why":"the cluster may have been restored`, "")
	if strings.Contains(log, `"level":"warn"`) || strings.Contains(log, `state of the cluster","why"`) {
		t.Errorf("a warm start has logged:\n%s", log)
	}
}

// Two servers in front of each other, a server in front of itself behind an address that it does not know, and
// one that has itself beside a member: all notice it. No call goes round, and the member is used.
func TestInFrontOfItself(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	const loop = "this server is in front of itself"
	c := harness.StartCluster(t, harness.ClusterOptions{Size: 1})
	front := func(name string, endpoints ...string) *harness.Front {
		f := harness.NewFront(c, harness.FrontOptions{Endpoints: strings.Join(endpoints, ","), Dir: filepath.Join(t.TempDir(), name)})
		relay, err := harness.NewRelay(f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(relay.Close)
		f.Options.Args[1] = strings.ReplaceAll(f.Options.Args[1], "SELF", "http://"+relay.Addr)
		f.Begin()
		return f
	}
	itself := front("itself", "SELF")
	one := harness.NewFront(c, harness.FrontOptions{Dir: filepath.Join(t.TempDir(), "one")})
	other := front("other", one.URL)
	one.Options.Args[1] = other.URL
	one.Begin()
	for _, f := range []*harness.Front{itself, one, other} {
		c.Eventually("the loop is logged", func() bool { return strings.Contains(f.Log(), loop) })
		conn, err := grpc.NewClient("passthrough:///"+f.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), testLimit)
		defer cancel()
		_, err = pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("a")})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), loop) {
			t.Errorf("a put answers %v", err)
		}
	}
	beside := front("beside", "SELF", c.Endpoints())
	c.Eventually("the member is followed", func() bool { return strings.Contains(beside.Log(), "following the cluster") })
}

// The term that is shown is the current one, also if no connection has broken since it changed.
func TestTermIsCurrent(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	f := newFixture(t, harness.ClusterOptions{}, harness.FrontOptions{})
	resumes := f.metric("vigil_cluster_resumes_total")
	before := statusOf(f, f.cluster.Members[0])
	for _, member := range f.cluster.Members {
		at := statusOf(f, member)
		if at.Header.MemberId == before.Leader {
			continue
		}
		_, err := f.via.MoveLeader(f.ctx, at.Header.MemberId)
		f.must(err)
		break
	}
	f.eventually("another term", func() bool { return statusOf(f, f.cluster.Members[0]).RaftTerm > before.RaftTerm })
	f.awaitPage(f.front.URL+"/debug/vars", 200, fmt.Sprintf(`"term":%d,`, statusOf(f, f.cluster.Members[0]).RaftTerm))
	if f.metric("vigil_cluster_resumes_total") != resumes {
		t.Log("the watch of the cluster was resumed")
	}
}

// Without a member, calls of both APIs fail soon and with the reason, whatever they would have to do first: the
// permission, the newest revision, the namespaces.
func TestErrorsWithoutAMember(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: []string{"--listen-kube-urls", kube}})
	kv := pb.NewKVClient(f.dial(f.front.Addr))
	// Until the cluster has said whether callers without a token are admitted, the Kubernetes API answers 429.
	f.awaitPage(kube+"/api/v1/configmaps", 200, "ConfigMapList")
	f.cluster.Members[0].Kill()
	f.awaitPage(f.front.URL+"/readyz", 503, "no member of the cluster can be followed")
	var wait sync.WaitGroup
	soon := func(what string, call func()) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			began := time.Now()
			call()
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%s: the error came after %v", what, took)
			}
		}()
	}
	const reason = "the cluster cannot be reached"
	soon("range", func() {
		_, err := kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a")})
		f.wantUnavailable("range", err, reason, f.cluster.Endpoints())
	})
	soon("put", func() {
		_, err := kv.Put(f.ctx, &pb.PutRequest{Key: []byte("a")})
		f.wantUnavailable("put", err, reason, f.cluster.Endpoints())
	})
	soon("list", func() {
		client := http.Client{Timeout: testLimit}
		response, err := client.Get(kube + "/api/v1/configmaps")
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != 503 || !strings.Contains(string(text), reason) {
			t.Errorf("a list: %v %s", response.Status, text)
		}
	})
	wait.Wait()
}

// A server may be in front of one that is in front of a cluster.
func TestInFrontOfAFront(t *testing.T) {
	t.Parallel()
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{})
	second := harness.StartFront(f.cluster, harness.FrontOptions{Endpoints: f.front.URL, Dir: filepath.Join(t.TempDir(), "second")})
	client := f.client(second.URL)
	f.awaitSync(client)
	revision := f.put(client, "a", "x")
	f.follow(client.Watch(f.ctx, "a", clientv3.WithRev(revision)), revision, revision)
	answer, err := client.Get(f.ctx, "a")
	f.must(err)
	f.wantSame("a get", answer.Kvs[0].ModRevision, revision)
}

// A cluster that does not answer does not keep the server from ending, whatever waits for it.
func TestStopWhileTheClusterHangs(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: []string{"--listen-kube-urls", kube}})
	member := f.cluster.Members[0]
	f.must(member.Pause())
	defer member.Continue()
	go f.via.Put(f.ctx, "a", "x")
	go f.via.Get(f.ctx, "a")
	go http.Post(kube+"/api/v1/namespaces", "application/json", strings.NewReader(`{"metadata":{"name":"x"}}`))
	f.cluster.Eventually("the calls are forwarded", func() bool { return f.metric("vigil_cluster_forwarded_total") > 0 })
	began := time.Now()
	f.front.Stop()
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("it has ended after %v", took)
	}
}

// Both APIs say why they are not ready, and are alive nevertheless. A hundred watches are one.
func TestReadinessAndMetrics(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("the words are Vigil's")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: []string{
		"--listen-kube-urls", kube, "--kube-garbage-collector=false"}}) // which watches, too
	f.awaitPage(f.front.URL+"/readyz?verbose", 200, "[+]mirror ok")
	f.awaitPage(kube+"/readyz", 200, "ok")

	const watches = 100
	for range watches {
		created := f.via.Watch(f.ctx, "a", clientv3.WithCreatedNotify())
		first := <-created
		f.must(first.Err())
	}
	for range 10 {
		_, err := f.via.Put(f.ctx, "a", "x")
		f.must(err)
	}
	f.cluster.Eventually("the events are sent", func() bool {
		return f.metric("etcd_grpc_proxy_events_coalescing_total") >= 10*watches-10
	})
	for name, want := range map[string]int64{
		"vigil_cluster_upstream_watches":            1,
		"vigil_cluster_upstream_events_total":       10,
		"vigil_cluster_coalescing_factor":           watches,
		"etcd_grpc_proxy_watchers_coalescing_total": watches - 1,
		"etcd_grpc_proxy_cache_keys_total":          1,
		"vigil_cluster_mirror_lag_revisions":        0,
		"vigil_cluster_loads_total":                 1,
	} {
		if got := f.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}

	f.cluster.Members[0].Kill()
	f.awaitPage(f.front.URL+"/readyz", 503, "[+]serializable_read ok\n[-]linearizable_read failed: no member of the cluster")
	f.awaitPage(f.front.URL+"/readyz/mirror", 503, "no member of the cluster can be followed")
	f.awaitPage(f.front.URL+"/health", 503, "no member of the cluster can be followed")
	f.awaitPage(f.front.URL+"/livez", 200, "ok")
	f.awaitPage(kube+"/readyz", 500, "[-]etcd failed: no member of the cluster can be followed")
	f.awaitPage(kube+"/livez", 200, "ok")
	f.cluster.Recover()
	f.awaitPage(f.front.URL+"/readyz", 200, "ok")
	f.awaitPage(kube+"/readyz", 200, "ok")
	f.awaitPage(f.front.URL+"/health", 200, "true")
	f.awaitPage(f.front.URL+"/debug/vars", 200, fmt.Sprintf(`"term":%d,`, statusOf(f, f.cluster.Members[0]).RaftTerm))
}
