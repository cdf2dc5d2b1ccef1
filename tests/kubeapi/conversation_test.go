package kubeapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

const (
	resources  = 63 // one watch cache each, as in an idle kube-apiserver
	busy       = 16 // resources that are written to; the connections of the others only send pings
	readers    = 8  // caches with consistent reads; half of them get only progress notifications
	probers    = 2
	writers    = 4
	talk       = 12 * time.Second // longer than the keep-alive interval
	probeEvery = time.Second
	leaseEvery = 2 * time.Second
)

// TestConversation simulates a busy kube-apiserver for some seconds: 70 connections, a watch for each cache,
// writes with preconditions, consistent reads that request progress ten times a second, probes, leases, pages
// and compactions, all at once. At the end every cache equals the server's state.
func TestConversation(t *testing.T) {
	a := newApiserver(t)
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	caches := a.startCaches(ctx)
	ending, end := context.WithTimeout(ctx, talk)
	defer end()

	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { a.write(ending, a.client(), rand.New(rand.NewPCG(1, uint64(i))), i) })
	}
	for range probers {
		all.Go(func() { a.probe(ending, a.client()) })
	}
	all.Go(func() { a.masterLease(ending, caches[0].client) })
	all.Go(func() { a.compactTwice(ending, a.client()) })
	for _, c := range caches[busy-readers/2 : busy+readers/2] {
		all.Go(func() {
			for ending.Err() == nil {
				if err := c.fresh(ctx, c.prefix[:len(c.prefix)-1]); err != nil {
					a.Error(err)
				}
			}
		})
	}
	all.Wait()

	var events, progress int
	for _, c := range caches {
		all.Go(func() {
			if err := c.fresh(ctx, c.prefix[:len(c.prefix)-1]); err != nil {
				a.Error(err)
			}
			if err := c.same(ctx); err != nil {
				a.Error(err)
			}
		})
	}
	all.Wait()
	for _, c := range caches {
		events, progress = events+c.events, progress+c.progress
	}
	connections := int64(resources + probers + writers + 1)
	// The client opens a separate connection for each status call.
	if dials := a.wire.dials.Load() - a.statuses.Load(); connections != 70 || dials != connections || a.wire.goAways.Load() != 0 {
		t.Errorf("%d connections dialled %d times and got %d GOAWAY frames", connections, dials,
			a.wire.goAways.Load())
	}
	if pings := a.wire.pings.Load(); pings < resources-busy-readers/2 || a.wire.answers.Load() < pings-connections {
		t.Errorf("%d pings, %d answered", pings, a.wire.answers.Load())
	}
	if events == 0 || progress < readers/2*int(talk/progressEvery)/2 {
		t.Errorf("%d events, %d progress answers", events, progress)
	}
	t.Logf("%d events, %d progress answers, %d pings", events, progress, a.wire.pings.Load())
}

func prefixOf(resource int) string {
	return fmt.Sprintf("/registry/resource%02d/", resource)
}

func (a *apiserver) startCaches(ctx context.Context) []*cache {
	caches := make([]*cache, resources)
	for i := range caches {
		c := newCache(a.client(), prefixOf(i), a.Errorf)
		a.create(c.client, c.prefix+"default/first", "k8s")
		a.must(c.fill(ctx))
		caches[i] = c
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(ctx)
		}()
		a.Cleanup(func() { <-done })
	}
	return caches
}

// write creates, changes and deletes its own objects in the busy resources; it knows the revision of each.
func (a *apiserver) write(ctx context.Context, c *kubernetes.Client, random *rand.Rand, writer int) {
	revisions := map[string]int64{}
	for ctx.Err() == nil {
		key := fmt.Sprintf("%sns-%d/object-%d", prefixOf(random.IntN(busy)), writer, random.IntN(20))
		at := revisions[key]
		if at != 0 && random.IntN(4) == 0 {
			gone, err := c.Kubernetes.OptimisticDelete(a.ctx, key, at, kubernetes.DeleteOptions{GetOnFailure: true})
			if err != nil || !gone.Succeeded {
				a.Errorf("delete of %s at %d: %+v, %v", key, at, gone, err)
				return
			}
			delete(revisions, key)
		} else {
			value := make([]byte, 200+random.IntN(2000))
			put, err := c.Kubernetes.OptimisticPut(a.ctx, key, value, at, kubernetes.PutOptions{GetOnFailure: at != 0})
			if err != nil || !put.Succeeded || put.Revision <= at {
				a.Errorf("put of %s at %d: %+v, %v", key, at, put, err)
				return
			}
			revisions[key] = put.Revision
		}
		if random.IntN(10) == 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
	}
}

// probe is the health check, with its timeout of two seconds.
func (a *apiserver) probe(ctx context.Context, c *kubernetes.Client) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(a.ctx, 2*time.Second)
		if _, err := c.KV.Get(limited, "/registry/health"); err != nil {
			a.Errorf("health probe: %v", err)
		}
		cancel()
		a.statuses.Add(1)
		if status, err := c.Status(a.ctx, a.server.URL); err != nil || status.DbSize <= 0 {
			a.Errorf("status: %v, %v", status, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}

// masterLease is the endpoint reconciler: it grants a new lease each time, and the old one expires.
func (a *apiserver) masterLease(ctx context.Context, c *kubernetes.Client) {
	var at int64
	for ctx.Err() == nil {
		lease, err := c.Grant(a.ctx, 15)
		if err != nil {
			a.Errorf("lease: %v", err)
			return
		}
		put, err := c.Kubernetes.OptimisticPut(a.ctx, prefixOf(0)+"masterlease", []byte("10.0.0.1"), at,
			kubernetes.PutOptions{GetOnFailure: true, LeaseID: lease.ID})
		if err != nil || !put.Succeeded {
			a.Errorf("master lease: %+v, %v", put, err)
			return
		}
		at = put.Revision
		select {
		case <-ctx.Done():
		case <-time.After(leaseEvery):
		}
	}
}

// compactTwice runs rounds of the compactor while all other calls run.
func (a *apiserver) compactTwice(ctx context.Context, c *kubernetes.Client) {
	version, revision, _ := a.compact(c, 0, 0)
	for range 3 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(talk / 5):
		}
		version, revision, _ = a.compact(c, version, revision)
	}
}
