package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// follower is an informer that remembers the versions of each object.
type follower struct {
	lock    sync.Mutex
	objects map[string][]int64
	exists  map[string]bool
	deleted []string // although they did not exist
	store   cache.Store
}

func follow(url string) *follower {
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, QPS: -1})
	if err != nil {
		panic(err)
	}
	f := &follower{objects: map[string][]int64{}, exists: map[string]bool{}}
	informer := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "default", nil).ForResource(configMaps).Informer()
	f.store = informer.GetStore()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.note(o.(*unstructured.Unstructured), false) },
		UpdateFunc: f.update,
		DeleteFunc: f.remove,
	})
	if err != nil {
		panic(err)
	}
	go informer.RunWithContext(context.Background())
	return f
}

func (f *follower) update(before, after any) {
	old, u := before.(*unstructured.Unstructured), after.(*unstructured.Unstructured)
	if old.GetResourceVersion() != u.GetResourceVersion() { // a list after a break repeats what was known
		f.note(u, false)
	}
}

func (f *follower) remove(o any) {
	if gone, missed := o.(cache.DeletedFinalStateUnknown); missed {
		f.lock.Lock()
		defer f.lock.Unlock()
		delete(f.exists, registry+gone.Obj.(*unstructured.Unstructured).GetName())
		return
	}
	f.note(o.(*unstructured.Unstructured), true)
}

func (f *follower) note(u *unstructured.Unstructured, deleted bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	key := registry + u.GetName()
	f.objects[key] = append(f.objects[key], versionOf(u.GetResourceVersion()))
	if deleted && !f.exists[key] {
		f.deleted = append(f.deleted, key)
	}
	f.exists[key] = !deleted
}

// finish waits until the informer has what the server has, and prints what it received.
func (f *follower) finish(objects dynamic.ResourceInterface) bool {
	var have, server map[string]int64
	for end := time.Now().Add(settleLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := limited()
		list, err := objects.List(ctx, metav1.ListOptions{})
		cancel()
		if err != nil {
			continue
		}
		have, server = map[string]int64{}, map[string]int64{}
		for i := range list.Items {
			server[registry+list.Items[i].GetName()] = versionOf(list.Items[i].GetResourceVersion())
		}
		for _, o := range f.store.List() {
			u := o.(*unstructured.Unstructured)
			have[registry+u.GetName()] = versionOf(u.GetResourceVersion())
		}
		if maps.Equal(have, server) {
			break
		}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	print(object{"informer": object{"client": fmt.Sprint("informer of ", len(f.objects), " objects"), "objects": f.objects,
		"cache": have, "server": server, "deleted": f.deleted}})
	return have != nil
}
