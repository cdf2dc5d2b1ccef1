package watch

import (
	"fmt"
	"slices"
)

// Guarantee names a property of watches that a recording can violate.
type Guarantee string

const (
	Ordered      Guarantee = "ordered"
	Unique       Guarantee = "unique"
	Reliable     Guarantee = "reliable"
	Atomic       Guarantee = "atomic"
	Resumable    Guarantee = "resumable"
	Bookmarkable Guarantee = "bookmarkable"
	Filtered     Guarantee = "filtered"
	Creations    Guarantee = "creations"
	Previous     Guarantee = "previous values"
	Contiguous   Guarantee = "contiguous fragments"
	Compacted    Guarantee = "compacted"
)

const faultsMax = 20 // of one recording; more would not help

// Fault is one place where a recording contradicts the truth.
type Fault struct {
	Guarantee Guarantee
	Text      string
}

// Rules say how strict to be.
type Rules struct {
	// MissingPrev: a previous value may be missing, because etcd omits it after a compaction.
	MissingPrev bool
	// Behind: a watch from now on may begin with a revision that other clients know already, because
	// the server follows others.
	Behind bool
	// LostDeletes: deletes of a revision to which the history was compacted may be missing, because
	// etcd 3.4.23 removes them with it (etcd's issue 18089).
	LostDeletes bool
}

// checker walks one leg of a recording.
type checker struct {
	truth  *Truth
	rules  Rules
	name   string
	leg    *Leg
	faults []Fault

	seen      map[place]bool
	last      int64 // revision of the last event
	lastPlace int   // index of the last event in its revision
	marked    int64 // the last progress mark: all events up to it must have been sent
}

type place struct {
	revision int64
	key      string
}

// Check returns everything that is wrong with a recording.
func Check(truth *Truth, rules Rules, recording *Recording) []Fault {
	var faults []Fault
	for n := range recording.Legs {
		leg := &recording.Legs[n]
		c := &checker{truth: truth, rules: rules, leg: leg, seen: map[place]bool{},
			name: fmt.Sprintf("%s leg %d %s", recording.Name, n, &leg.Request)}
		lastLeg := n == len(recording.Legs)-1
		if n > 0 {
			c.joins(&recording.Legs[n-1])
		}
		c.run(lastLeg && recording.Complete)
		faults = append(faults, c.faults...)
		if len(faults) >= faultsMax {
			return faults[:faultsMax]
		}
	}
	return faults
}

func (c *checker) fault(g Guarantee, format string, args ...any) {
	c.faults = append(c.faults, Fault{g, c.name + ": " + fmt.Sprintf(format, args...)})
}

func (c *checker) run(complete bool) {
	for n := range c.leg.Responses {
		c.response(&c.leg.Responses[n], n == len(c.leg.Responses)-1)
	}
	shown := max(c.last, c.marked)
	if complete {
		shown = c.truth.Last()
	}
	c.first()
	c.missing(shown)
}

// joins checks that a leg begins where the previous one ended, or at the revision of a compaction.
func (c *checker) joins(before *Leg) {
	from, next := c.leg.Request.Start, before.next()
	if n := len(before.Responses); n > 0 && before.Responses[n-1].Compacted > 0 {
		next = before.Responses[n-1].Compacted
	}
	// A leg whose creation was never answered has no position; the next one sends the same request.
	if before.Request.Start == 0 && before.Created == 0 && from == 0 {
		return
	}
	if from != next {
		c.fault(Resumable, "resumed at %d, but the previous leg ended at %d", from, next)
	}
}

func (c *checker) response(r *Response, isLast bool) {
	if r.Torn {
		c.fault(Contiguous, "the fragments of a response at %d were not contiguous", r.Revision)
	}
	if r.Canceled {
		c.canceled(r, isLast)
		return
	}
	if r.Progress {
		c.progress(r)
		return
	}
	for n := range r.Events {
		c.event(&r.Events[n], n == 0)
	}
	if n := len(r.Events); n > 0 && r.Revision < r.Events[n-1].KV.Mod {
		c.fault(Bookmarkable, "header %d below its own event %s", r.Revision, &r.Events[n-1])
	}
}

func (c *checker) event(e *Event, first bool) {
	revision := e.KV.Mod
	at := place{revision, e.KV.Key}
	truth, where := c.truth.find(revision, e.KV.Key)
	switch {
	case !c.leg.Request.wants(e):
		c.fault(Filtered, "%s was not requested", e)
	case truth == nil:
		c.fault(Reliable, "%s never happened", e)
	case c.seen[at]:
		c.fault(Unique, "%s came twice", e)
	case revision < c.last, revision == c.last && where < c.lastPlace:
		c.fault(Ordered, "%s came after revision %d", e, c.last)
	case first && revision == c.last:
		c.fault(Atomic, "the events of %d came in two responses", revision)
	}
	if revision <= c.marked {
		c.fault(Bookmarkable, "%s came after the mark at %d", e, c.marked)
	}
	if truth != nil {
		c.content(e, truth)
	}
	c.seen[at] = true
	if revision >= c.last {
		c.last, c.lastPlace = revision, where
	}
}

func (c *checker) content(e, truth *Event) {
	switch {
	case e.Delete != truth.Delete || e.KV.Value != truth.KV.Value:
		c.fault(Reliable, "%s was really %s", e, truth)
	case e.KV != truth.KV:
		c.fault(Creations, "%s was really %s", e, truth)
	}
	switch {
	case e.Prev == nil && truth.Prev == nil:
	case e.Prev == nil && !c.leg.Request.Prev:
	case e.Prev == nil && c.rules.MissingPrev:
	case !c.leg.Request.Prev:
		c.fault(Previous, "%s had a previous value that was not requested", e)
	case e.Prev == nil || truth.Prev == nil || *e.Prev != *truth.Prev:
		c.fault(Previous, "the value before %s was %s, not %s", e, truth.Prev, e.Prev)
	}
}

// progress checks that everything up to the mark has been sent, and that marks never decrease.
func (c *checker) progress(r *Response) {
	if r.Revision < c.marked || r.Revision < c.last {
		c.fault(Bookmarkable, "a mark at %d after %d", r.Revision, max(c.marked, c.last))
	}
	c.marked = max(c.marked, r.Revision)
	for _, wanted := range c.wanted(max(c.from(), c.last), r.Revision) {
		if !c.seen[place{wanted.KV.Mod, wanted.KV.Key}] {
			c.fault(Bookmarkable, "the mark at %d came before %s", r.Revision, &wanted)
			return
		}
	}
}

// canceled checks that nothing follows, and that a compaction cancels only watches below it.
func (c *checker) canceled(r *Response, isLast bool) {
	if !isLast {
		c.fault(Reliable, "the watch continued after it was canceled")
	}
	if r.Compacted == 0 {
		return
	}
	if r.Compacted > c.truth.Compacted {
		c.fault(Compacted, "canceled for a compaction to %d, but there was none above %d",
			r.Compacted, c.truth.Compacted)
	}
	if next := c.leg.next(); next >= r.Compacted {
		c.fault(Compacted, "canceled for a compaction to %d, but the watch was at %d", r.Compacted, next)
	}
}

// from is the first revision that the leg must receive.
func (c *checker) from() int64 {
	if c.leg.Request.Start > 0 {
		return c.leg.Request.Start
	}
	// The header of a created answer may be newer than the revision at which the watch began.
	from := c.leg.Created + 1
	for _, r := range c.leg.Responses {
		if len(r.Events) > 0 {
			return min(from, r.Events[0].KV.Mod)
		}
	}
	return from
}

// first checks that a watch begins with the first event at or after the requested revision.
// wanted returns the events that the leg must have received, except those that the rules let be lost
// and that were.
func (c *checker) wanted(from, to int64) []Event {
	all := c.truth.Wanted(&c.leg.Request, from, to)
	if !c.rules.LostDeletes {
		return all
	}
	return slices.DeleteFunc(all, func(e Event) bool {
		return e.Delete && slices.Contains(c.truth.Compactions, e.KV.Mod) && !c.seen[place{e.KV.Mod, e.KV.Key}]
	})
}

func (c *checker) first() {
	for _, r := range c.leg.Responses {
		if len(r.Events) == 0 {
			continue
		}
		got := &r.Events[0]
		if c.leg.Request.Start == 0 {
			if got.KV.Mod <= c.leg.Known && !c.rules.Behind {
				c.fault(Resumable, "a watch from now, requested after %d, began with %s", c.leg.Known, got)
			}
			return
		}
		wanted := c.wanted(c.leg.Request.Start, got.KV.Mod)
		if len(wanted) == 0 || wanted[0].KV.Mod != got.KV.Mod || wanted[0].KV.Key != got.KV.Key {
			c.fault(Resumable, "the watch began with %s", got)
		}
		return
	}
}

func (c *checker) missing(shown int64) {
	if c.leg.Request.Start == 0 && c.leg.Created == 0 {
		return
	}
	for _, wanted := range c.wanted(c.from(), shown) {
		if !c.seen[place{wanted.KV.Mod, wanted.KV.Key}] {
			c.fault(Reliable, "%s is missing", &wanted)
			if len(c.faults) >= faultsMax {
				return
			}
		}
	}
}
