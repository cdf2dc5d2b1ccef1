package main

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// election is a candidate, and what has happened to it: "leads" and "led", and the leaders that it has seen.
type election struct {
	leave    context.CancelFunc
	lock     sync.Mutex
	happened []string
	leaders  []string
}

func (e *election) note(list *[]string, what string) {
	e.lock.Lock()
	defer e.lock.Unlock()
	*list = append(*list, what)
}

func (e *election) dump() map[string][]string {
	e.lock.Lock()
	defer e.lock.Unlock()
	return map[string][]string{"happened": append([]string{}, e.happened...), "leaders": append([]string{}, e.leaders...)}
}

// elect starts a candidate, which renews its lease for as long as a restart of the server may take.
func elect(c clients, identity string) *election {
	ctx, leave := context.WithCancel(context.Background())
	e := &election{leave: leave}
	elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "lock", Namespace: "one"}, Client: c.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
		LeaseDuration: 60 * time.Second, RenewDeadline: 50 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { e.note(&e.happened, "leads") },
			OnStoppedLeading: func() { e.note(&e.happened, "led") },
			OnNewLeader:      func(leader string) { e.note(&e.leaders, leader) },
		},
	}))
	go elector.Run(ctx)
	return e
}
