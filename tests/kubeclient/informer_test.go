// Package kubeclient tests a server with client-go: informers list, watch, and continue after cut connections, restarts and
// compactions without a lost or repeated change.
package kubeclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const patience = 120 * time.Second

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

var unverified = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// server is a vigil process on fixed ports that can be stopped and started again.
type server struct {
	t          *testing.T
	dir        string
	etcd, kube string
	scheme     string // of the Kubernetes API
	flags      []string
	process    *exec.Cmd
}

func newServer(t *testing.T) *server {
	return newServerWith(t, "http")
}

// newServerWith starts a server; the scheme https means TLS with an automatic certificate, and so HTTP/2.
func newServerWith(t *testing.T, scheme string, flags ...string) *server {
	s := &server{t: t, scheme: scheme, flags: flags, dir: t.TempDir(), etcd: "127.0.0.1:" + freePort(t), kube: "127.0.0.1:" + freePort(t)}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	binary := os.Getenv("VIGIL_BIN")
	if binary == "" {
		s.t.Fatal("VIGIL_BIN is not set")
	}
	s.process = exec.Command(binary, "serve", "--data-dir", s.dir, "--listen-client-urls", "http://"+s.etcd,
		"--advertise-client-urls", "http://"+s.etcd, "--listen-kube-urls", s.scheme+"://"+s.kube,
		"--kube-namespace-objects=false") // tests count their own config maps
	s.process.Args = append(s.process.Args, s.flags...)
	if s.scheme == "https" {
		s.process.Args = append(s.process.Args, "--auto-tls")
	}
	s.process.Env = []string{}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := unverified.Get(s.scheme + "://" + s.kube + "/readyz"); err == nil {
			answer.Body.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("the server does not become ready")
		}
	}
}

func (s *server) stop() {
	if s.process == nil {
		return
	}
	s.process.Process.Signal(syscall.SIGTERM)
	if err := s.process.Wait(); err != nil {
		s.t.Errorf("the server ended with %v", err)
	}
	s.process = nil
}

// kill ends the process with SIGKILL.
func (s *server) kill() {
	s.process.Process.Kill()
	s.process.Wait()
	s.process = nil
}

// call sends a request to etcd's API of the server.
func (s *server) call(path string, request map[string]any) map[string]any {
	s.t.Helper()
	body, _ := json.Marshal(request)
	answer, err := http.Post("http://"+s.etcd+path, "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, text)
	}
	var decoded map[string]any
	if err := json.Unmarshal(text, &decoded); err != nil {
		s.t.Fatal(err)
	}
	return decoded
}

func (s *server) compact() {
	status := s.call("/v3/maintenance/status", map[string]any{})
	s.call("/v3/kv/compaction", map[string]any{"revision": status["header"].(map[string]any)["revision"]})
}

// revisionOf is the revision in the header of an answer.
func (s *server) revisionOf(answer map[string]any) int64 {
	revision, err := strconv.ParseInt(answer["header"].(map[string]any)["revision"].(string), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return revision
}

func (s *server) compactTo(revision int64) {
	s.call("/v3/kv/compaction", map[string]any{"revision": revision})
}

func (s *server) put(name, value string) int64 {
	object := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":%q},"data":{"v":%q}}`,
		name, name, value)
	return s.revisionOf(s.call("/v3/kv/put", map[string]any{"key": key64(name), "value": base64.StdEncoding.EncodeToString([]byte(object))}))
}

func (s *server) remove(name string) int64 {
	return s.revisionOf(s.call("/v3/kv/deleterange", map[string]any{"key": key64(name)}))
}

func key64(name string) string {
	return base64.StdEncoding.EncodeToString([]byte("/registry/configmaps/default/" + name))
}

func (s *server) client() dynamic.Interface {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://" + s.kube, QPS: 1000, Burst: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// follower is an informer that remembers every change of each object.
type follower struct {
	lock   sync.Mutex
	values map[string][]string
	store  cache.Store
}

func follow(t *testing.T, s *server) *follower {
	return followAll(t, s, configMaps, func(u *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(u.Object, "data", "v")
		return value
	})
}

func followAll(t *testing.T, s *server, resource schema.GroupVersionResource,
	valueOf func(u *unstructured.Unstructured) string) *follower {
	f := &follower{values: map[string][]string{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client(), 0, "default", nil)
	informer := factory.ForResource(resource).Informer()
	f.store = informer.GetStore()
	note := func(what string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		u := object.(*unstructured.Unstructured)
		value := valueOf(u)
		f.lock.Lock()
		defer f.lock.Unlock()
		f.values[u.GetName()] = append(f.values[u.GetName()], what+value)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { note("+", object) },
		UpdateFunc: func(before, after any) {
			if before.(*unstructured.Unstructured).GetResourceVersion() != after.(*unstructured.Unstructured).GetResourceVersion() {
				note("=", after)
			}
		},
		DeleteFunc: func(object any) { note("-", object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return f
}

func (f *follower) expect(t *testing.T, name string, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		f.lock.Lock()
		got = append([]string{}, f.values[name]...)
		f.lock.Unlock()
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		if len(got) > len(want) {
			break
		}
	}
	t.Fatalf("%s: %v, and not %v", name, got, want)
}

func TestInformerSeesEveryChangeOnce(t *testing.T) {
	s := newServer(t)
	s.put("before", "1")
	f := follow(t, s)
	f.expect(t, "before", "+1")
	want := []string{"+0"}
	s.put("many", "0")
	for i := 1; i < 200; i++ {
		s.put("many", fmt.Sprint(i))
		want = append(want, fmt.Sprintf("=%d", i))
	}
	s.remove("many")
	f.expect(t, "many", append(want, "-199")...)
	s.remove("before")
	f.expect(t, "before", "+1", "-1")
}

func TestInformerContinuesAfterARestart(t *testing.T) {
	s := newServer(t)
	s.put("a", "1")
	f := follow(t, s)
	f.expect(t, "a", "+1")
	s.stop()
	s.start()
	s.put("a", "2")
	s.put("b", "1")
	f.expect(t, "a", "+1", "=2")
	f.expect(t, "b", "+1")
}

func TestInformerListsAgainWhenHistoryIsCompacted(t *testing.T) {
	s := newServer(t)
	s.put("kept", "1")
	s.put("gone", "1")
	f := follow(t, s)
	f.expect(t, "gone", "+1")
	s.stop()
	s.start()
	s.put("kept", "2")
	s.put("kept", "3")
	s.remove("gone")
	s.compact()
	f.expect(t, "gone", "+1", "-1")
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		f.lock.Lock()
		got := f.values["kept"]
		f.lock.Unlock()
		if got[len(got)-1] == "=3" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("kept: %v", got)
		}
	}
}

func TestPagesAndStreamedListsAgree(t *testing.T) {
	s := newServer(t)
	for i := range 25 {
		s.put(fmt.Sprintf("c%02d", i), "1")
	}
	client := s.client().Resource(configMaps).Namespace("default")
	paged, token := 0, ""
	for {
		list, err := client.List(context.Background(), metav1.ListOptions{Limit: 10, Continue: token})
		if err != nil {
			t.Fatal(err)
		}
		paged += len(list.Items)
		if token = list.GetContinue(); token == "" {
			break
		}
	}
	yes := true
	watch, err := client.Watch(context.Background(), metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	streamed := 0
	for event := range watch.ResultChan() {
		object := event.Object.(*unstructured.Unstructured)
		if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
		streamed++
	}
	if paged != 25 || streamed != 25 {
		t.Fatalf("%d in pages, %d in a stream, of 25", paged, streamed)
	}
}
