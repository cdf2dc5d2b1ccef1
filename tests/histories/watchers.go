package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/watch"
)

// objectValue is what a client of Kubernetes has written into its object.
var objectValue = regexp.MustCompile(`op-[0-9]+-[0-9]+`)

const (
	askEvery    = 300 * time.Millisecond
	settleLimit = time.Minute
)

// book collects what is recorded with one server.
type book struct {
	lock sync.Mutex
	h    History
}

func (b *book) add(o *Op) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.h.Ops = append(b.h.Ops, o)
}

// watcher records one watch of clientv3, which resumes by itself.
type watcher struct {
	client    *clientv3.Client
	recording *watch.Recording
	events    []Event // with leases and times, if all is true
	all       bool
	reached   int64 // all events up to it were received
	lock      sync.Mutex
	stop      context.CancelFunc
	done      chan struct{}
}

// startWatch watches through a connection of its own, so that its progress is its own.
func startWatch(addr, name string, request watch.Request, all bool) (*watcher, error) {
	client, err := connect(addr)
	if err != nil {
		return nil, err
	}
	w := &watcher{client: client, all: all, done: make(chan struct{}),
		recording: &watch.Recording{Name: name, Complete: true, Legs: []watch.Leg{{Request: request}}}}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	options := []clientv3.OpOption{clientv3.WithCreatedNotify(), clientv3.WithRev(request.Start), clientv3.WithRange(request.End)}
	if request.End == "\x00" {
		options[2] = clientv3.WithFromKey()
	}
	if request.Prev {
		options = append(options, clientv3.WithPrevKV())
	}
	channel := client.Watch(ctx, request.Key, options...)
	go func() {
		defer close(w.done)
		for answer := range channel {
			w.receive(&answer)
		}
	}()
	go w.ask(ctx)
	return w, nil
}

// ask requests progress now and then.
func (w *watcher) ask(ctx context.Context) {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, callLimit)
		w.client.RequestProgress(limit)
		cancel()
		time.Sleep(askEvery)
	}
}

func (w *watcher) receive(answer *clientv3.WatchResponse) {
	w.lock.Lock()
	defer w.lock.Unlock()
	leg := &w.recording.Legs[0]
	if answer.Created {
		if leg.Created == 0 {
			leg.Created = answer.Header.Revision
		}
		return
	}
	response := watch.Response{Revision: answer.Header.Revision, Progress: answer.IsProgressNotify(), Canceled: answer.Canceled}
	seen := now()
	for _, e := range answer.Events {
		event := Event{Delete: e.Type == mvccpb.Event_DELETE, KV: kvOf(e.Kv), Seen: seen}
		if w.all {
			w.events = append(w.events, event)
		}
		converted := event.converted()
		if e.PrevKv != nil {
			prev := Event{KV: kvOf(e.PrevKv)}
			before := prev.converted().KV
			converted.Prev = &before
		}
		response.Events = append(response.Events, converted)
		w.reached = max(w.reached, event.KV.Mod)
	}
	if response.Progress {
		w.reached = max(w.reached, response.Revision)
	}
	leg.Responses = append(leg.Responses, response)
}

// finish waits until everything up to a revision was received, and ends the watch.
func (w *watcher) finish(revision int64) error {
	deadline := time.Now().Add(settleLimit)
	for {
		w.lock.Lock()
		reached := w.reached
		w.lock.Unlock()
		if reached >= revision {
			break
		}
		select {
		case <-w.done:
			return errors.New(w.recording.Name + ": the watch ended by itself")
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: reached only %d, not %d", w.recording.Name, reached, revision)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.stop()
	<-w.done
	return w.client.Close()
}
