package main

import (
	"fmt"
	"math"
	"slices"
)

const listedMax = 20 // operations that are shown with a violation; more would not help

// attribute finds the writer of every revision that no answered operation has claimed. Puts are found by their values,
// which are unique. Deletes have nothing that tells them apart, so writers are chosen for all of them together.
func (c *revisionChecker) attribute(ops []*Op) {
	byValue := map[string]*Op{}
	var deletes []*Op // without an answer, or without a revision in it
	for _, o := range ops {
		for _, a := range o.actions() {
			if a.Kind == "put" {
				byValue[a.Value] = o
			}
		}
		if o.Outcome == Unknown && o.mayDelete() || o.isUnversionedWrite() {
			deletes = append(deletes, o)
		}
	}
	used := map[*Op]int64{}
	var open []int64 // revisions of deletes without a writer
	for r := int64(2); r <= c.t.last(); r++ {
		events := c.t.at(r)
		if c.writers[r] != nil || !isOurs(events[0].KV.Key) {
			continue
		}
		if slices.ContainsFunc(events, func(e Event) bool { return !e.Delete }) {
			c.findPut(r, byValue, used)
		} else {
			open = append(open, r)
		}
	}
	c.findDeletes(open, slices.DeleteFunc(deletes, func(o *Op) bool { return used[o] != 0 }), ops)
	c.twice(byValue)
}

func (o *Op) mayDelete() bool {
	return slices.ContainsFunc(o.actions(), func(a Action) bool { return a.Kind == "delete" })
}

// isUnversionedWrite is true of an answered delete of an object of Kubernetes.
func (o *Op) isUnversionedWrite() bool {
	return o.Outcome == Done && o.Revision == 0 && o.isKV() && o.wrote()
}

// findPut finds the writer of a revision with a put.
func (c *revisionChecker) findPut(r int64, byValue map[string]*Op, used map[*Op]int64) {
	events := c.t.at(r)
	put := slices.IndexFunc(events, func(e Event) bool { return !e.Delete })
	o := byValue[events[put].KV.Value]
	switch {
	case o == nil:
		c.add("no client wrote revision %d: %v", r, events)
	case o.Outcome == Refused:
		c.add("refused, but written at %d: %s", r, o)
	case o.Outcome == Done && o.Revision > 0:
		c.add("applied twice, or at another revision: %d has %v, by %s", r, events, o)
	default:
		c.adopt(r, o, used)
	}
}

func (c *revisionChecker) adopt(r int64, o *Op, used map[*Op]int64) {
	if used[o] != 0 {
		c.add("applied twice: at %d and %d: %s", used[o], r, o)
		return
	}
	used[o], c.writers[r], o.Hint = r, o, r
	if !c.explains(o, r) {
		c.add("not what was written: revision %d has %v, by %s", r, c.t.at(r), o)
	}
	if before := c.t.committedBefore(r); before < o.Call && before != math.MaxInt64 {
		c.add("written before it was sent: revision %d by %s", r, o)
	}
}

// findDeletes gives every open revision a delete that explains it, and every answered delete a revision.
func (c *revisionChecker) findDeletes(open []int64, deletes, ops []*Op) {
	m := newMatching(len(open), len(deletes), func(at, n int) bool {
		r, o := open[at], deletes[n]
		return o.Call <= c.t.committedBefore(r) && o.until() >= c.t.after[r-2] && c.explains(o, r)
	})
	for n, o := range deletes {
		if o.Outcome == Done && !m.matchRight(n) {
			c.add("lost: no revision is that of %s", o)
		}
	}
	for at, r := range open {
		if before := c.t.get(c.t.at(r)[0].KV.Key, r-1); !m.matchLeft(at) && (before == nil || before.Lease == 0) {
			// The deletes of a lease are checked elsewhere.
			c.add("no client wrote revision %d: %v%s", r, c.t.at(r), unanswered(ops, c.t.at(r)[0].KV.Key))
		}
	}
	for at, n := range m.ofLeft {
		if n >= 0 {
			c.writers[open[at]], deletes[n].Hint = deletes[n], open[at]
		}
	}
}

// unanswered lists the operations without an answer, and the refused ones, that might have changed a key.
func unanswered(ops []*Op, key string) (text string) {
	count := 0
	for _, o := range ops {
		changes := func(a Action) bool { return a.Kind != "get" && a.covers(key) }
		if o.Outcome == Done && !o.isUnversionedWrite() || !slices.ContainsFunc(o.actions(), changes) {
			continue
		}
		if count++; count <= listedMax {
			text += fmt.Sprintf("\n    %s", o)
		}
	}
	return fmt.Sprintf("\n  unanswered or refused writes of %s: %d%s", key, count, text)
}

// twice checks that no value was written at two revisions, as a repeated request would do.
func (c *revisionChecker) twice(byValue map[string]*Op) {
	at := map[string]int64{}
	for r := int64(2); r <= c.t.last(); r++ {
		for _, e := range c.t.at(r) {
			if e.Delete || byValue[e.KV.Value] == nil {
				continue
			}
			if first := at[e.KV.Value]; first != 0 && first != r {
				c.add("applied twice: at %d and %d: %s", first, r, byValue[e.KV.Value])
			}
			at[e.KV.Value] = r
		}
	}
}
