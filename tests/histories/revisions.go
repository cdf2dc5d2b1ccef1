package main

import (
	"fmt"
	"slices"
	"strings"
)

const faultsMax = 20 // of one check; more would not help

// faults collects what is wrong.
type faults []string

func (f *faults) add(format string, args ...any) {
	if len(*f) < faultsMax {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// ours are the prefixes of keys that only the recorded operations change.
var ours = []string{"h/", "l/", "/registry/configmaps/default/c"}

func isOurs(key string) bool {
	return slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// revisionChecker compares every answer with the state at the revision that it carries.
type revisionChecker struct {
	faults
	t       *Timeline
	writers []*Op // by revision
}

// CheckRevisions checks that the revisions respect the order of time, that every revision has exactly one writer, and
// that every answer shows exactly the state of its revision. It returns the operation that wrote each revision.
func CheckRevisions(t *Timeline, ops []*Op) ([]*Op, []string) {
	c := &revisionChecker{t: t, writers: make([]*Op, len(t.revisions)+2)}
	c.realTime(ops)
	for _, o := range ops {
		if o.Outcome == Done && o.isKV() {
			c.answer(o)
		}
	}
	c.attribute(ops)
	return c.writers, c.faults
}

// realTime checks that no answer is older than what a client knew before its call.
func (c *revisionChecker) realTime(ops []*Op) {
	type moment struct {
		time, revision int64
		op             *Op // nil: a client knows the revision from now on
	}
	var moments []moment
	for _, o := range ops {
		if o.Outcome != Done || o.Revision == 0 {
			continue
		}
		moments = append(moments, moment{o.Return, o.Revision, nil})
		if !o.Serializable {
			moments = append(moments, moment{o.Call, o.Revision, o})
		}
	}
	for _, events := range c.t.revisions {
		if events[0].Seen > 0 {
			moments = append(moments, moment{events[0].Seen, events[0].KV.Mod, nil})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return compareInt(a.time, b.time) })
	known := int64(0)
	for _, m := range moments {
		switch {
		case m.op == nil:
			known = max(known, m.revision)
		case m.revision < known && m.op.readsPast():
		case m.revision < known:
			c.add("stale: a client knew revision %d before %s", known, m.op)
		case m.revision == known && m.op.wrote():
			c.add("revision used twice: a client knew revision %d before %s", known, m.op)
		}
	}
}

func (o *Op) readsPast() bool {
	return slices.ContainsFunc(o.Then, func(a Action) bool { return a.Revision > 0 })
}

// answer compares an answered operation with the timeline.
func (c *revisionChecker) answer(o *Op) {
	wrote := o.wrote()
	before := o.Revision
	if wrote && o.Revision > 0 {
		before--
		c.claim(o)
	}
	switch {
	case o.Revision == 0:
		c.unversioned(o)
		return
	case o.Revision > c.t.last():
		c.add("lost: revision %d does not exist at the end, which is %d: %s", o.Revision, c.t.last(), o)
		return
	}
	c.compares(o, before)
	written := map[string]*KV{} // by the operation itself
	for i, a := range o.ran() {
		result := o.result(i)
		switch {
		case a.Kind == "get":
			c.shows(o, c.read(&a, before, written), result.KVs)
		case a.Kind == "delete":
			old := c.read(&a, before, written)
			if int64(len(old)) != result.Deleted {
				c.add("wrong count: %d keys existed before %s", len(old), o)
			}
			if a.Prev {
				c.shows(o, old, result.KVs)
			}
			for _, kv := range old {
				written[kv.Key] = nil
			}
		case a.Prev:
			c.shows(o, c.read(&a, before, written), result.KVs)
			fallthrough
		default:
			written[a.Key] = c.t.get(a.Key, o.Revision)
		}
	}
}

// unversioned checks an answer without a revision: what it shows must have existed.
func (c *revisionChecker) unversioned(o *Op) {
	for _, result := range o.Results {
		for _, kv := range result.KVs {
			if was := c.t.get(kv.Key, kv.Mod); was == nil || was.Mod != kv.Mod || was.Value != kv.Value {
				c.add("never existed: %s, but revision %d had %s", o, kv.Mod, was)
			}
		}
	}
}

// read returns what an action of an operation must show.
func (c *revisionChecker) read(a *Action, revision int64, written map[string]*KV) (kvs []KV) {
	if a.Revision > 0 {
		revision, written = a.Revision, nil
	}
	keys := []string{a.Key}
	if a.Prefix {
		keys = keys[:0]
		at, _ := slices.BinarySearch(c.t.keys, a.Key)
		for ; at < len(c.t.keys) && strings.HasPrefix(c.t.keys[at], a.Key); at++ {
			keys = append(keys, c.t.keys[at])
		}
	}
	for _, key := range keys {
		kv, changed := written[key]
		if !changed {
			kv = c.t.get(key, revision)
		}
		if kv != nil {
			kvs = append(kvs, *kv)
		}
	}
	return kvs
}

func (c *revisionChecker) shows(o *Op, want, got []KV) {
	same := len(want) == len(got)
	for i := 0; same && i < len(want); i++ {
		at := slices.IndexFunc(got, func(kv KV) bool { return kv.Key == want[i].Key })
		same = at >= 0 && equal(&got[at], &want[i])
	}
	if !same {
		c.add("wrong answer: %s; the state was %+v", o, want)
	}
}

// equal compares an answer with the timeline. Objects of Kubernetes have no versions and creations.
func equal(got, want *KV) bool {
	if strings.HasPrefix(got.Key, "/registry/") {
		return got.Mod == want.Mod && got.Value == want.Value
	}
	return *got == *want
}

// holds says whether the conditions of an operation were true at a revision.
func (c *revisionChecker) holds(o *Op, revision int64) bool {
	for i := range o.If {
		var s slot
		if kv := c.t.get(o.If[i].Key, revision); kv != nil {
			s = slot{kv.Value, kv.Version, kv.Create, kv.Mod, kv.Lease}
		}
		if o.If[i].holds(&s) != yes {
			return false
		}
	}
	return true
}

func (c *revisionChecker) compares(o *Op, revision int64) {
	if really := c.holds(o, revision); really != o.Succeeded {
		c.add("wrong comparison: it was really %v: %s", really, o)
	}
}

// explains says whether an operation without an answer has written exactly the events of a revision.
func (c *revisionChecker) explains(o *Op, revision int64) bool {
	if c.holds(o, revision-1) {
		return c.fits(o.Then, revision)
	}
	return c.fits(o.Else, revision)
}

// claim makes an operation the writer of its revision, whose events must be exactly what it wrote.
func (c *revisionChecker) claim(o *Op) {
	if o.Revision < 2 || o.Revision > c.t.last() {
		return // reported as lost
	}
	if other := c.writers[o.Revision]; other != nil {
		c.add("revision used twice: by %s and by %s", other, o)
		return
	}
	c.writers[o.Revision] = o
	if !c.fits(o.ran(), o.Revision) {
		c.add("not what was written: revision %d has %v, by %s", o.Revision, c.t.at(o.Revision), o)
	}
}

// fits says whether the events of a revision are what the actions write.
func (c *revisionChecker) fits(actions []Action, revision int64) bool {
	found := 0
	events := c.t.at(revision)
	for i := range actions {
		a := &actions[i]
		matched := 0
		for n := range events {
			e := &events[n]
			if a.covers(e.KV.Key) && e.Delete == (a.Kind == "delete") && a.Kind != "get" &&
				(e.Delete || e.KV.Value == a.Value && e.KV.Lease == a.Lease) {
				matched++
			}
		}
		if a.Kind == "put" && matched != 1 || a.Kind == "delete" && matched != len(c.read(a, revision-1, nil)) {
			return false // a delete takes every key that exists
		}
		found += matched
	}
	return found == len(events)
}
