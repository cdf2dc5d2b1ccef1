package main

import (
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// What clients do with leases and locks.

// grant creates a lease whose id the client chooses, so that it is known even without an answer.
func (w *worker) grant(ttl int64) (int64, bool) {
	w.count++
	o := &Op{Kind: "grant", Lease: int64(w.number+1)<<48 | w.count}
	ctx, cancel := limited()
	defer cancel()
	call := now()
	answer, err := pb.NewLeaseClient(w.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: o.Lease, TTL: ttl})
	if err == nil {
		o.TTL, o.Revision = answer.TTL, answer.Header.Revision
	}
	return o.Lease, w.record(o, call, err)
}

func (w *worker) revoke(id int64) bool {
	ctx, cancel := limited()
	defer cancel()
	o := &Op{Kind: "revoke", Lease: id}
	call := now()
	answer, err := w.Revoke(ctx, clientv3.LeaseID(id))
	if err == nil {
		o.Revision = answer.Header.Revision
	}
	if isRefusal(err) {
		err = errRepeated
	}
	return w.record(o, call, err)
}

// clientv3 repeats a revoke after a lost answer, so one that finds no lease may have ended it.
var errRepeated = errors.New("no lease, perhaps because of the first attempt")

func (w *worker) renew(id int64) bool {
	ctx, cancel := limited()
	defer cancel()
	o := &Op{Kind: "renew", Lease: id}
	call := now()
	answer, err := w.KeepAliveOnce(ctx, clientv3.LeaseID(id))
	if err == nil {
		o.TTL, o.Revision = answer.TTL, answer.Revision
	}
	return w.record(o, call, err)
}

// useLease puts keys under a lease that is then revoked, renewed, or left to expire.
func (w *worker) useLease() bool {
	id, ok := w.grant(1 + w.random.Int63n(2))
	for i := 0; ok && i < 2; i++ {
		w.count++
		a := w.put(leasePrefix(id) + string(rune('0'+i)))
		a.Lease = id
		o := &Op{Kind: "put with lease", Then: []Action{a}}
		ctx, cancel := limited()
		call := now()
		ok = w.record(o, call, w.execute(ctx, o))
		cancel()
	}
	switch w.random.Intn(3) {
	case 0:
		return ok && w.revoke(id)
	case 1:
		return ok && w.renew(id)
	}
	return ok
}

// useLock takes the lock of the time, holds it for a moment, and releases it or ends its lease.
func (w *worker) useLock() bool {
	id, ok := w.grant(2)
	if !ok {
		return false
	}
	o := &Op{Kind: "lock", Lease: id, Lock: lockName((now() - w.start) / cellNanos)}
	ctx, cancel := limited()
	defer cancel()
	call := now()
	answer, err := w.locks.Lock(ctx, &lockpb.LockRequest{Name: []byte(o.Lock), Lease: id})
	if err == nil {
		o.Held, o.Revision = string(answer.Key), answer.Header.Revision
	}
	if w.record(o, call, err) && w.random.Intn(4) != 0 {
		time.Sleep(time.Duration(w.random.Intn(5)) * time.Millisecond)
		w.unlock(o.Held)
	}
	return w.revoke(id)
}

func (w *worker) unlock(held string) {
	o := &Op{Kind: "unlock", Held: held}
	ctx, cancel := limited()
	defer cancel()
	call := now()
	answer, err := w.locks.Unlock(ctx, &lockpb.UnlockRequest{Key: []byte(held)})
	if err == nil {
		o.Revision = answer.Header.Revision
	}
	w.record(o, call, err)
}
