// Package kubeapi sends to a server the calls that a kube-apiserver sends to its etcd, and checks that every
// answer is what a kube-apiserver needs. The client is the one that Kubernetes uses,
// go.etcd.io/etcd/client/v3/kubernetes, with a separate connection for each resource.
package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// progressEvery is how often a kube-apiserver requests progress while a reader waits.
const progressEvery = 100 * time.Millisecond

// cache is the watch cache of one resource: a list, then a watch from the revision after it. It checks
// what a kube-apiserver relies on, and reports everything else as a fault.
type cache struct {
	prefix string
	client *kubernetes.Client
	fault  func(format string, args ...any)

	lock     sync.Mutex
	moved    *sync.Cond
	objects  map[string]*mvccpb.KeyValue
	revision int64 // everything up to this revision has been received
	events   int
	progress int // answers to progress requests
}

func newCache(client *kubernetes.Client, prefix string, fault func(string, ...any)) *cache {
	c := &cache{prefix: prefix, client: client, fault: fault,
		objects: map[string]*mvccpb.KeyValue{}}
	c.moved = sync.NewCond(&c.lock)
	return c
}

// fill lists the resource with a stream, as the cache of a kube-apiserver does since 1.37.
func (c *cache) fill(ctx context.Context) error {
	stream, err := c.client.KV.GetStream(ctx, c.prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	var last clientv3.RangeStreamResponse
	for chunk := range stream {
		if err := chunk.Err(); err != nil {
			return err
		}
		if last.RangeResponse != nil && last.Header.GetRevision() != 0 {
			c.fault("%s: a chunk after the one with the header", c.prefix)
		}
		for _, kv := range chunk.Kvs {
			c.objects[string(kv.Key)] = kv
		}
		last = chunk
	}
	if last.RangeResponse == nil || last.Header.GetRevision() == 0 {
		return fmt.Errorf("%s: no revision at the end of the list", c.prefix)
	}
	if last.Count != int64(len(c.objects)) || last.More {
		c.fault("%s: %d objects, count %d, more %v", c.prefix, len(c.objects), last.Count, last.More)
	}
	c.revision = last.Header.Revision
	return nil
}

// run follows the watch until ctx ends.
func (c *cache) run(ctx context.Context) {
	watch := c.client.Watch(clientv3.WithRequireLeader(ctx), c.prefix, clientv3.WithPrefix(),
		clientv3.WithRev(c.revision+1), clientv3.WithPrevKV(), clientv3.WithProgressNotify())
	for response := range watch {
		if err := response.Err(); err != nil {
			if ctx.Err() == nil {
				c.fault("%s: watch: %v", c.prefix, err)
			}
			return
		}
		c.lock.Lock()
		c.apply(response)
		c.moved.Broadcast()
		c.lock.Unlock()
	}
	if ctx.Err() == nil {
		c.fault("%s: the watch ended by itself", c.prefix)
	}
}

func (c *cache) apply(response clientv3.WatchResponse) {
	if response.IsProgressNotify() {
		c.progress++
		if response.Header.Revision < c.revision {
			c.fault("%s: progress at %d after %d", c.prefix, response.Header.Revision, c.revision)
		}
		c.revision = max(c.revision, response.Header.Revision)
		return
	}
	for _, event := range response.Events {
		if event.Kv.ModRevision <= c.revision {
			c.fault("%s: event of %d after %d was complete", c.prefix, event.Kv.ModRevision, c.revision)
		}
		if err := c.applyEvent(event); err != nil {
			c.fault("%s: %v", c.prefix, err)
		}
		c.events++
	}
	if n := len(response.Events); n > 0 {
		c.revision = response.Events[n-1].Kv.ModRevision
	}
}

// applyEvent is parseEvent of a kube-apiserver: a creation has no previous version; all other events must
// have it, and it must be the one in the cache.
func (c *cache) applyEvent(event *clientv3.Event) error {
	key := string(event.Kv.Key)
	held := c.objects[key]
	if event.IsCreate() {
		if held != nil || event.PrevKv != nil {
			return fmt.Errorf("%s created at %d over %v", key, event.Kv.ModRevision, held)
		}
		c.objects[key] = event.Kv
		return nil
	}
	if event.PrevKv == nil {
		return fmt.Errorf("%s at %d: event received with PrevKv=nil", key, event.Kv.ModRevision)
	}
	if held == nil || held.ModRevision != event.PrevKv.ModRevision ||
		string(held.Value) != string(event.PrevKv.Value) {
		return fmt.Errorf("%s at %d: previous version %v, held %v", key, event.Kv.ModRevision,
			event.PrevKv, held)
	}
	if event.Type == mvccpb.DELETE {
		delete(c.objects, key)
	} else {
		c.objects[key] = event.Kv
	}
	return nil
}

// fresh is a consistent read from the cache: it reads the server's revision with a range of a missing key,
// then requests progress until the cache has reached it. A kube-apiserver gives up after three seconds.
func (c *cache) fresh(ctx context.Context, absent string) error {
	got, err := c.client.Kubernetes.Get(ctx, absent, kubernetes.GetOptions{})
	if err != nil {
		return err
	}
	if got.KV != nil {
		return fmt.Errorf("%s exists", absent)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	go c.request(ctx)
	defer context.AfterFunc(ctx, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.moved.Broadcast()
	})()

	c.lock.Lock()
	defer c.lock.Unlock()
	for c.revision < got.Revision {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: at %d, wants %d: %w", c.prefix, c.revision, got.Revision,
				errors.New("too large resource version"))
		}
		c.moved.Wait()
	}
	return nil
}

func (c *cache) request(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// clientv3 finds the stream of the watch by its metadata, which must be the same.
		if err := c.client.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil && ctx.Err() == nil {
			c.fault("%s: progress request: %v", c.prefix, err)
		}
	}
}

// same compares the cache with a list at its revision.
func (c *cache) same(ctx context.Context) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	listed, err := c.client.Kubernetes.List(ctx, c.prefix, kubernetes.ListOptions{Revision: c.revision})
	if err != nil {
		return err
	}
	if len(listed.Kvs) != len(c.objects) {
		return fmt.Errorf("%s: %d listed at %d, %d cached", c.prefix, len(listed.Kvs), c.revision, len(c.objects))
	}
	for _, kv := range listed.Kvs {
		if held := c.objects[string(kv.Key)]; held == nil || held.ModRevision != kv.ModRevision {
			return fmt.Errorf("%s at %d: listed %v, cached %v", kv.Key, c.revision, kv, held)
		}
	}
	return nil
}
