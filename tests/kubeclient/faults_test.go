package kubeclient

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	changes  = 400 // at least
	objects  = 12
	pace     = 4 * time.Millisecond // between changes, so that connections are cut meanwhile
	viewCuts = 6                    // of connections; an informer waits longer after each
	enough   = 15 * time.Second     // after this time, fewer cuts suffice on a slow machine
	fewCuts  = 3                    // the minimum of cuts on any machine
)

// change is a change that a watch reports.
type change struct {
	what    watch.EventType
	name    string
	version int64
}

// writer changes objects and remembers the changes.
type writer struct {
	s       *server
	random  *rand.Rand
	there   map[string]int64
	history []change
}

func newWriter(s *server) *writer {
	return &writer{s: s, random: rand.New(rand.NewSource(2)), there: map[string]int64{}}
}

func (w *writer) step(i int) {
	name := fmt.Sprintf("c%02d", w.random.Intn(objects))
	what := watch.Added
	var version int64
	if _, there := w.there[name]; !there || w.random.Intn(4) > 0 {
		if there {
			what = watch.Modified
		}
		version = w.s.put(name, fmt.Sprint(i))
		w.there[name] = version
	} else {
		what = watch.Deleted
		version = w.s.remove(name)
		delete(w.there, name)
	}
	w.history = append(w.history, change{what, name, version})
}

// recorder has the changes that a raw watch has reported so far.
type recorder struct {
	name        string
	lock        sync.Mutex
	seenChanges []change
	last        int64
	err         error
}

// note records an event. It returns false if the watch must be started again.
func (r *recorder) note(event watch.Event) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	object, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		status, _ := event.Object.(*metav1.Status)
		// An event that was cut in the middle is an error of the client.
		if status == nil || status.Reason != metav1.StatusReasonInternalError {
			r.err = fmt.Errorf("%v", event.Object)
		}
		return false
	}
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if event.Type != watch.Bookmark {
		r.seenChanges = append(r.seenChanges, change{event.Type, object.GetName(), version})
	}
	r.last = version
	return true
}

func (r *recorder) seen() (int, int64, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.seenChanges), r.last, r.err
}

type starter func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// follow starts the watch again at its last version whenever it ends.
func (r *recorder) follow(ctx context.Context, start starter) {
	for ctx.Err() == nil {
		_, last, _ := r.seen()
		w, err := start(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(last), AllowWatchBookmarks: true})
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			if !r.note(event) {
				break
			}
		}
		w.Stop()
	}
}

// retry uses client-go's own watcher, which starts again by itself.
func (r *recorder) retry(ctx context.Context, t *testing.T, start starter) {
	_, last, _ := r.seen()
	w, err := watchtools.NewRetryWatcherWithContext(ctx, fmt.Sprint(last), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return start(ctx, options)
		}})
	if err != nil {
		t.Error(err)
		return
	}
	for event := range w.ResultChan() {
		r.note(event)
	}
}

func configOf(s *server, p *proxy, protobuf bool) *rest.Config {
	config := &rest.Config{Host: s.scheme + "://" + p.addr, QPS: 10000, Burst: 10000}
	if s.scheme == "https" {
		config.TLSClientConfig.Insecure = true
	}
	if protobuf { // only protobuf
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	return config
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Over HTTP/1.1 each watch has its own connection; over TLS and HTTP/2 the watches of a client share one.
func TestRawWatchesReportEveryChangeOnceDespiteFaults(t *testing.T) {
	t.Run("http", func(t *testing.T) { rawWatchesWithFaults(t, "http", 3000, 60) })
	t.Run("https", func(t *testing.T) { rawWatchesWithFaults(t, "https", 8000, 30) })
}

// needsMore says whether more changes are needed.
func needsMore(t *testing.T, p *proxy, i, cuts int, begun time.Time) bool {
	if time.Since(begun) > 10*patience {
		t.Fatalf("only %d connections were cut", p.cutCount())
	}
	return i < changes || p.cutCount() < fewCuts || (p.cutCount() < cuts && time.Since(begun) < enough)
}

func rawWatchesWithFaults(t *testing.T, scheme string, budget int64, cuts int) {
	s := newServerWith(t, scheme)
	p := newProxy(t, s.kube, budget)
	first := s.put("before", "1")
	typed := must[*corev1client.CoreV1Client](t)(corev1client.NewForConfig(configOf(s, p, true)))
	plain := must[dynamic.Interface](t)(dynamic.NewForConfig(configOf(s, p, false)))
	parts := must[metadata.Interface](t)(metadata.NewForConfig(configOf(s, p, false)))
	byName := map[string]starter{
		"typed":    typed.ConfigMaps("default").Watch,
		"dynamic":  plain.Resource(configMaps).Namespace("default").Watch,
		"metadata": parts.Resource(configMaps).Namespace("default").Watch,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }()
	var recorders []*recorder
	begin := func(name string, run func(r *recorder)) {
		r := &recorder{name: name, last: first}
		recorders = append(recorders, r)
		all.Add(1)
		go func() { defer all.Done(); run(r) }()
	}
	for name, start := range byName {
		begin(name, func(r *recorder) { r.follow(ctx, start) })
	}
	begin("retry", func(r *recorder) { r.retry(ctx, t, byName["dynamic"]) })

	w, compacted := newWriter(s), first
	oldest := func() int64 {
		least := first
		for i, r := range recorders {
			if _, last, _ := r.seen(); i == 0 || last < least {
				least = last
			}
		}
		return least
	}
	begun := time.Now()
	for i := 0; needsMore(t, p, i, cuts, begun); i++ {
		w.step(i)
		time.Sleep(pace)
		switch i % changes {
		case 100:
			s.stop()
			s.start()
		case 200:
			s.kill()
			s.start()
		case 50, 150, 250, 350:
			if least := oldest(); least > compacted {
				s.compactTo(least)
				compacted = least
			}
		}
	}
	p.settle()
	for _, r := range recorders {
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			count, _, err := r.seen()
			if err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			if count >= len(w.history) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d of %d changes", r.name, count, len(w.history))
			}
		}
	}
	// Repeated changes would come before this one.
	last := s.put("last", "1")
	w.history = append(w.history, change{watch.Added, "last", last})
	for _, r := range recorders {
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			if _, seen, _ := r.seen(); seen >= last || time.Now().After(end) {
				break
			}
		}
		r.lock.Lock()
		for i, seen := range r.seenChanges {
			if i >= len(w.history) || seen != w.history[i] {
				t.Errorf("%s: change %d is %v and not %v", r.name, i, seen, w.history[min(i, len(w.history)-1)])
				break
			}
		}
		if len(r.seenChanges) != len(w.history) {
			t.Errorf("%s: %d changes, not %d", r.name, len(r.seenChanges), len(w.history))
		}
		r.lock.Unlock()
	}
	t.Logf("%d changes, %d connections cut", len(w.history), p.cutCount())
}

// view is an informer and the state according to its handler.
type view struct {
	name     string
	informer cache.SharedIndexInformer
	lock     sync.Mutex
	versions map[string]int64 // of objects, including deleted ones
	there    map[string]bool
	faults   []string
}

func versionOf(object any) (string, int64) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	version, _ := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	return accessor.GetName(), version
}

func (v *view) note(what string, object any) {
	name, version := versionOf(object)
	v.lock.Lock()
	defer v.lock.Unlock()
	rises := version > v.versions[name] || (what == "delete" && version == v.versions[name])
	if v.there[name] != (what != "add") || !rises {
		v.faults = append(v.faults, fmt.Sprintf("%s of %s at %d after %d", what, name, version, v.versions[name]))
	}
	v.versions[name] = version
	v.there[name] = what != "delete"
}

func (v *view) start(t *testing.T, stop <-chan struct{}) {
	v.versions, v.there = map[string]int64{}, map[string]bool{}
	_, err := v.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { v.note("add", object) },
		UpdateFunc: func(before, after any) {
			_, old := versionOf(before)
			if _, now := versionOf(after); now != old { // otherwise it was only listed again
				v.note("update", after)
			}
		},
		DeleteFunc: func(object any) { v.note("delete", object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go v.informer.Run(stop)
}

// differs says how the view differs from the store; it is empty if they are equal.
func (v *view) differs(want map[string]int64) string {
	v.lock.Lock()
	handled := map[string]int64{}
	for name, version := range v.versions {
		if v.there[name] {
			handled[name] = version
		}
	}
	v.lock.Unlock()
	kept := map[string]int64{}
	for _, object := range v.informer.GetStore().List() {
		name, version := versionOf(object)
		kept[name] = version
	}
	if fmt.Sprint(handled) == fmt.Sprint(want) && fmt.Sprint(kept) == fmt.Sprint(want) {
		return ""
	}
	return fmt.Sprintf("handler %v, informer %v, store %v", handled, kept, want)
}

// checkViews waits until all views equal the store.
func checkViews(t *testing.T, views []*view, want map[string]int64) {
	t.Helper()
	for _, v := range views {
		for end := time.Now().Add(patience); v.differs(want) != ""; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s", v.name, v.differs(want))
			}
		}
		v.lock.Lock()
		if len(v.faults) > 0 {
			t.Errorf("%s: %v", v.name, v.faults)
		}
		v.lock.Unlock()
	}
}

// viewsThrough returns informers of each kind that client-go has, which are not started yet.
func viewsThrough(t *testing.T, s *server, p *proxy) []*view {
	typed := must[*corev1client.CoreV1Client](t)(corev1client.NewForConfig(configOf(s, p, true)))
	plain := must[dynamic.Interface](t)(dynamic.NewForConfig(configOf(s, p, false)))
	parts := must[metadata.Interface](t)(metadata.NewForConfig(configOf(s, p, false)))
	return []*view{
		{name: "dynamic", informer: dynamicinformer.NewFilteredDynamicInformer(plain, configMaps, "default", 0, cache.Indexers{}, nil).Informer()},
		{name: "metadata", informer: metadatainformer.NewFilteredMetadataInformer(parts, configMaps, "default", 0, cache.Indexers{}, nil).Informer()},
		{name: "typed", informer: cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return typed.ConfigMaps("default").List(ctx, options)
			},
			WatchFuncWithContext: typed.ConfigMaps("default").Watch,
		}, typed), &corev1.ConfigMap{}, 0, cache.Indexers{})},
	}
}

func TestInformersMatchTheStoreAfterFaults(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.kube, 10000)
	views := viewsThrough(t, s, p)
	stop := make(chan struct{})
	defer close(stop)
	w := newWriter(s)
	for i := range 20 {
		w.step(i)
	}
	for _, v := range views {
		v.start(t, stop)
	}
	begun := time.Now()
	for i := 20; needsMore(t, p, i, viewCuts, begun); i++ {
		w.step(i)
		time.Sleep(pace)
		switch i {
		case 100:
			s.stop()
			s.start()
		case 200:
			p.cutAll()
			w.step(i)
			s.compact()
		case 300:
			s.kill()
			s.start()
			w.step(i)
			s.compact()
		}
	}
	p.settle()
	checkViews(t, views, w.there)
	t.Logf("%d changes, %d connections cut", len(w.history), p.cutCount())
}

// The typed client reads what it writes, and lists and gets the same as the dynamic client.
func TestTypedAndDynamicClientsReadTheSame(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.kube, 0)
	typed := must[*corev1client.CoreV1Client](t)(corev1client.NewForConfig(configOf(s, p, true)))
	plain := must[dynamic.Interface](t)(dynamic.NewForConfig(configOf(s, p, false)))
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "x", Value: "ü"}}}}}}
	made := must[*corev1.Pod](t)(typed.Pods("default").Create(ctx, pod, metav1.CreateOptions{}))
	got := must[*corev1.Pod](t)(typed.Pods("default").Get(ctx, "p", metav1.GetOptions{}))
	list := must[*corev1.PodList](t)(typed.Pods("default").List(ctx, metav1.ListOptions{}))
	other := must[*unstructured.Unstructured](t)(plain.Resource(configMaps.GroupVersion().WithResource("pods")).
		Namespace("default").Get(ctx, "p", metav1.GetOptions{}))
	var converted corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, &converted); err != nil {
		t.Fatal(err)
	}
	converted.TypeMeta, got.TypeMeta, made.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}, metav1.TypeMeta{}
	for name, one := range map[string]*corev1.Pod{"created": made, "got": got, "listed": &list.Items[0]} {
		if one.String() != converted.String() {
			t.Errorf("%s: %v, and as JSON %v", name, one, converted)
		}
	}
	if list.ResourceVersion != got.ResourceVersion || len(list.Items) != 1 {
		t.Errorf("a list of %d at %s", len(list.Items), list.ResourceVersion)
	}
}

// A list that is too long to be built in one step, whole and in pages; errors are in protobuf, too.
func TestLongListsInProtobuf(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.kube, 0)
	typed := must[*corev1client.CoreV1Client](t)(corev1client.NewForConfig(configOf(s, p, true))).ConfigMaps("default")
	value := strings.Repeat("v", 2000)
	for i := range 300 {
		s.put(fmt.Sprintf("c%03d", i), value)
	}
	ctx := context.Background()
	for _, options := range []metav1.ListOptions{{}, {Limit: 250}, {Limit: 250, LabelSelector: "!none"}} {
		list := must[*corev1.ConfigMapList](t)(typed.List(ctx, options))
		items := list.Items
		if options.Limit > 0 {
			options.Continue = list.Continue
			rest := must[*corev1.ConfigMapList](t)(typed.List(ctx, options))
			items = append(items, rest.Items...)
		}
		for i, item := range items {
			if item.Name != fmt.Sprintf("c%03d", i) || item.Data["v"] != value || item.ResourceVersion == "" {
				t.Fatalf("%v: item %d is %v", options, i, item.ObjectMeta)
			}
		}
		if len(items) != 300 || list.ResourceVersion == "" {
			t.Fatalf("%v: %d items at %q", options, len(items), list.ResourceVersion)
		}
	}
	if _, err := typed.Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
