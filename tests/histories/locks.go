package main

import (
	"math"
	"slices"
	"time"
)

// hold is a time during which a client had a lock: from the answer until it asked for the release, or until its lease
// may have ended.
type hold struct {
	op         *Op
	begin, end int64
}

// CheckLocks checks that no two clients have a lock at the same time while their leases live, and that an answer is
// given only to the one whose key is the oldest.
func CheckLocks(t *Timeline, ops []*Op) []string {
	var found faults
	leases := tenancies(ops)
	released := map[string]int64{} // by key: the first attempt
	revoked := map[int64]int64{}
	for _, o := range ops {
		switch {
		case o.Kind == "unlock":
			released[o.Held] = earlier(released[o.Held], o.Call)
		case o.Kind == "revoke":
			revoked[o.Lease] = earlier(revoked[o.Lease], o.Call)
		}
	}
	holds := map[string][]hold{}
	for _, o := range ops {
		if o.Kind != "lock" || o.Outcome != Done {
			continue
		}
		end := int64(math.MaxInt64)
		if l := leases[o.Lease]; l != nil && l.alive != math.MinInt64 {
			end = l.alive + l.ttl*int64(time.Second)
		}
		end = min(end, orNever(released[o.Held]), orNever(revoked[o.Lease]))
		holds[o.Lock] = append(holds[o.Lock], hold{o, o.Return, end})
		checkOwner(&found, t, o)
	}
	for _, list := range holds {
		slices.SortFunc(list, func(a, b hold) int { return compareInt(a.begin, b.begin) })
		last := list[0]
		for _, h := range list[1:] {
			if h.begin < last.end {
				found.add("two clients have a lock: %s and %s", last.op, h.op)
			}
			if h.end > last.end {
				last = h
			}
		}
	}
	return found
}

func earlier(first, time int64) int64 {
	if first == 0 {
		return time
	}
	return min(first, time)
}

func orNever(time int64) int64 {
	if time == 0 {
		return math.MaxInt64
	}
	return time
}

// checkOwner checks that the key of a lock was the oldest one at the revision of the answer.
func checkOwner(found *faults, t *Timeline, o *Op) {
	if o.Revision > t.last() {
		return
	}
	own := t.get(o.Held, o.Revision)
	if own == nil {
		found.add("the key of a lock does not exist at its revision: %s", o)
		return
	}
	for _, kv := range t.list(o.Lock+"/", o.Revision) {
		if kv.Create < own.Create {
			found.add("a lock belongs to %s: %s", &kv, o)
		}
	}
}
