package main

import (
	"math"
	"slices"
	"strings"
	"time"
)

// tenancy is everything that is known about one lease.
type tenancy struct {
	alive   int64 // the last time at which an answered grant or renewal began
	ttl     int64
	revokes []*Op
	tried   bool // there was a grant
	ended   int64
}

// leaseChecker checks what happens to keys with leases.
type leaseChecker struct {
	faults
	t      *Timeline
	leases map[int64]*tenancy
}

// Remaining are the leases that the server has at the end.
type Remaining []int64

// CheckLeases checks that no key vanishes with its lease before its time or without a revoke, that all keys of a lease
// vanish together, and that none outlives it. writers are the operations that wrote the revisions.
func CheckLeases(t *Timeline, ops, writers []*Op, remaining Remaining) []string {
	c := &leaseChecker{t: t, leases: tenancies(ops)}
	for r := int64(2); r <= t.last(); r++ {
		if writers[r] == nil {
			c.vanished(r)
		} else {
			c.attached(r, writers[r])
		}
	}
	for id, l := range c.leases {
		for _, o := range l.revokes {
			if o.Outcome == Done && o.Revision <= t.last() {
				c.gone(id, o)
			}
		}
	}
	for _, kv := range t.list("", t.last()) {
		if kv.Lease != 0 && !slices.Contains(remaining, kv.Lease) {
			c.add("a key outlived its lease: %s", &kv)
		}
	}
	return c.faults
}

func tenancies(ops []*Op) map[int64]*tenancy {
	leases := map[int64]*tenancy{}
	for _, o := range ops {
		if o.Lease == 0 || o.Lock != "" {
			continue
		}
		l := leases[o.Lease]
		if l == nil {
			l = &tenancy{alive: math.MinInt64}
			leases[o.Lease] = l
		}
		switch {
		case o.Kind == "grant":
			l.tried = true
			l.ttl = max(l.ttl, o.TTL)
			fallthrough
		case o.Kind == "renew":
			if o.Outcome == Done {
				l.alive = max(l.alive, o.Call)
			}
		case o.Kind == "revoke" && o.Outcome != Refused:
			l.revokes = append(l.revokes, o)
		}
	}
	return leases
}

// vanished checks a revision that no client wrote: the deletes of a lease.
func (c *leaseChecker) vanished(r int64) {
	events := c.t.at(r)
	before := c.t.get(events[0].KV.Key, r-1)
	if !events[0].Delete || before == nil || before.Lease == 0 || strings.HasPrefix(before.Key, lockPrefix) {
		return // not of a lease, or perhaps by an unlock
	}
	id := before.Lease
	for _, e := range events {
		if kv := c.t.get(e.KV.Key, r-1); kv == nil || kv.Lease != id {
			c.add("revision %d deletes %s with the lease %x of another key", r, kv, id)
		}
	}
	l := c.leases[id]
	if l == nil || !l.tried {
		return // not one of the recorded operations
	}
	if l.ended != 0 {
		c.add("the keys of lease %x vanished at %d and %d", id, l.ended, r)
	}
	l.ended = r
	latest := c.t.committedBefore(r)
	if slices.ContainsFunc(l.revokes, func(o *Op) bool { return o.Call <= latest }) || l.alive == math.MinInt64 {
		return
	}
	if end := l.alive + l.ttl*int64(time.Second); latest < end {
		c.add("the keys of lease %x vanished at %d, %v too early", id, r, time.Duration(end-latest))
	}
}

// attached checks that no write uses a lease that has ended.
func (c *leaseChecker) attached(r int64, writer *Op) {
	for _, e := range c.t.at(r) {
		if l := c.leases[e.KV.Lease]; !e.Delete && l != nil && l.ended != 0 {
			c.add("lease %x was used at %d after it had ended at %d: %s", e.KV.Lease, r, l.ended, writer)
		}
	}
}

// gone checks that a revoked lease has no keys.
func (c *leaseChecker) gone(id int64, revoke *Op) {
	for _, key := range c.keysOf(id) {
		if kv := c.t.get(key, max(revoke.Revision, 1)); kv != nil && kv.Lease == id {
			c.add("%s exists after %s", kv, revoke)
		}
		if kv := c.t.get(key, c.t.last()); kv != nil && kv.Lease == id {
			c.add("%s exists at the end, after %s", kv, revoke)
		}
	}
}

// keysOf returns the keys that may belong to a lease: its id is in their names.
func (c *leaseChecker) keysOf(id int64) (keys []string) {
	prefix := leasePrefix(id)
	at, _ := slices.BinarySearch(c.t.keys, prefix)
	for ; at < len(c.t.keys) && strings.HasPrefix(c.t.keys[at], prefix); at++ {
		keys = append(keys, c.t.keys[at])
	}
	return keys
}
