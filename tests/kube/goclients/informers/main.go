// Informers of client-go of all kinds, which follow a kube-apiserver, or a watch tier in front of one.
//
//	informers URL TOKEN WEAK-TOKEN
//
// The user of the weak token may read config maps of the namespace "one" only. For each line of the standard input that says
// "dump", the program writes a line of JSON: for each informer whether it has synced, its store, and all events that it has given to a
// handler. "lists" does the same for lists in pages, and "elect" for a leader election. It ends with its input. The environment
// chooses client-go's features: KUBE_FEATURE_WatchListClient=false.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	resync   = time.Second
	protobuf = "application/vnd.kubernetes.protobuf"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	lamps      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}
)

// event is what a handler got of an object: added, updated, deleted, or gone, if the informer does not know its last state.
type event struct {
	What    string `json:"what"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// follower is an informer and what it has told.
type follower struct {
	informer cache.SharedIndexInformer
	lock     sync.Mutex
	events   map[string][]event
	resyncs  int
	errors   []string
}

func digest(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	sum := fnv.New64a()
	sum.Write(text)
	return fmt.Sprintf("%x", sum.Sum64())
}

func describe(what string, object any) (string, event) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		what, object = "gone", gone.Obj
	}
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		panic(err)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return key, event{what, accessor.GetResourceVersion(), digest(object)}
}

func (f *follower) note(what string, object any) {
	key, e := describe(what, object)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.events[key] = append(f.events[key], e)
}

func (f *follower) update(before, after any) {
	_, old := describe("", before)
	_, now := describe("", after)
	if old.Version != now.Version {
		f.note("updated", after)
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.resyncs++
}

func (f *follower) dump() map[string]any {
	f.lock.Lock()
	defer f.lock.Unlock()
	store := map[string]event{}
	for _, object := range f.informer.GetStore().List() {
		key, e := describe("", object)
		store[key] = e
	}
	return map[string]any{"synced": f.informer.HasSynced(), "version": f.informer.LastSyncResourceVersion(), "store": store,
		"events": f.events, "resyncs": f.resyncs, "errors": f.errors}
}

// clients are those of one user that speak one format.
type clients struct {
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func connect(url, token, format string) clients {
	config := &rest.Config{Host: url, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	config.ContentType = format
	return clients{must(kubernetes.NewForConfig(config)), must(dynamic.NewForConfig(config)), must(metadata.NewForConfig(config))}
}

type all struct {
	followers map[string]*follower
	stop      chan struct{}
}

func (a *all) follow(name string, informer cache.SharedIndexInformer) {
	f := &follower{informer: informer, events: map[string][]event{}, errors: []string{}}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.errors = append(f.errors, fmt.Sprintf("%s %v", errors.ReasonForError(err), err))
	}); err != nil {
		panic(err)
	}
	must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.note("added", object) },
		UpdateFunc: f.update,
		DeleteFunc: func(object any) { f.note("deleted", object) },
	}))
	a.followers[name] = f
	go informer.Run(a.stop)
}

func selecting(labels, fields string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = labels, fields
	}
}

// followAll starts the informers.
func followAll(url, token, weak string) *all {
	a := &all{map[string]*follower{}, make(chan struct{})}
	for format, c := range map[string]clients{"json": connect(url, token, runtime.ContentTypeJSON), "protobuf": connect(url, token, protobuf)} {
		typed := func(namespace, labels, fields string, every time.Duration) informers.SharedInformerFactory {
			return informers.NewSharedInformerFactoryWithOptions(c.typed, every, informers.WithNamespace(namespace),
				informers.WithTweakListOptions(selecting(labels, fields)))
		}
		everything := typed("", "", "", 0)
		a.follow("configmaps "+format, everything.Core().V1().ConfigMaps().Informer())
		a.follow("secrets "+format, everything.Core().V1().Secrets().Informer())
		a.follow("pods "+format, everything.Core().V1().Pods().Informer())
		a.follow("namespaces "+format, everything.Core().V1().Namespaces().Informer())
		a.follow("configmaps again "+format, typed("", "", "", resync).Core().V1().ConfigMaps().Informer())
		a.follow("configmaps of two "+format, typed("two", "", "", 0).Core().V1().ConfigMaps().Informer())
		a.follow("configmaps red "+format, typed("", "color=red", "", 0).Core().V1().ConfigMaps().Informer())
		a.follow("configmaps not red "+format, typed("", "color notin (red),color", "", 0).Core().V1().ConfigMaps().Informer())
		a.follow("configmaps called m1 "+format, typed("one", "", "metadata.name=m1", 0).Core().V1().ConfigMaps().Informer())
		a.follow("pods of n1 "+format, typed("", "", "spec.nodeName=n1", 0).Core().V1().Pods().Informer())
		a.follow("pods running "+format, typed("", "", "status.phase=Running", 0).Core().V1().Pods().Informer())
		less := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, "", nil)
		a.follow("configmaps metadata "+format, less.ForResource(configMaps).Informer())
		a.follow("lamps metadata "+format, less.ForResource(lamps).Informer())
		less = metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, "one", selecting("color=red", ""))
		a.follow("configmaps metadata red "+format, less.ForResource(configMaps).Informer())
	}
	c := connect(url, token, runtime.ContentTypeJSON)
	loose := dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, 0)
	a.follow("configmaps dynamic", loose.ForResource(configMaps).Informer())
	a.follow("lamps dynamic", loose.ForResource(lamps).Informer())
	loose = dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, resync, "", selecting("color=red", ""))
	a.follow("lamps red", loose.ForResource(lamps).Informer())
	loose = dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, "two", selecting("", "spec.on=true"))
	a.follow("lamps on", loose.ForResource(lamps).Informer())
	a.follow("configmaps weak", informers.NewSharedInformerFactoryWithOptions(connect(url, weak, protobuf).typed, 0,
		informers.WithNamespace("one")).Core().V1().ConfigMaps().Informer())
	return a
}

func (a *all) dump() map[string]any {
	found := map[string]any{}
	for name, f := range a.followers {
		found[name] = f.dump()
	}
	return found
}

func main() {
	url, token, weak := os.Args[1], os.Args[2], os.Args[3]
	var followers *all
	elections := map[string]*election{}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Fields(input.Text())
		var answer any
		switch words[0] {
		case "follow":
			followers = followAll(url, token, weak)
			answer = len(followers.followers)
		case "dump":
			answer = followers.dump()
		case "lists":
			answer = listAll(context.Background(), connect(url, token, runtime.ContentTypeJSON), connect(url, token, protobuf))
		case "elect":
			elections[words[1]] = elect(connect(url, token, protobuf), words[1])
			answer = true
		case "leave":
			elections[words[1]].leave()
			answer = true
		case "leaders":
			seen := map[string]any{}
			for name, e := range elections {
				seen[name] = e.dump()
			}
			answer = seen
		default:
			panic(words)
		}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			panic(err)
		}
	}
}
