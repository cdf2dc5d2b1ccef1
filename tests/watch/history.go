// Package watch records what real clients receive from their watches, and compares it with what was
// written: the six guarantees of etcd's watches (ordered, unique, reliable, atomic, resumable,
// bookmarkable), and whether filters, creations and previous values are correct.
package watch

import (
	"fmt"
	"slices"
)

// KV is a key at one revision.
type KV struct {
	Key, Value           string
	Create, Mod, Version int64
}

// Event is one change of one key. A delete has only key and revision.
type Event struct {
	Delete bool
	KV     KV
	Prev   *KV // as received; in the truth, the actual previous value
}

// Request has the options of a watch.
type Request struct {
	Key, End        string // End as on the wire: "" one key, "\x00" everything from Key on
	Start           int64  // 0: from now
	NoPut, NoDelete bool
	Prev            bool
}

// Response is one answer on a watch, its fragments joined.
type Response struct {
	Revision  int64 // of the header
	Events    []Event
	Progress  bool
	Canceled  bool
	Compacted int64 // of a watch canceled by a compaction: its revision
	Torn      bool  // another response came between its fragments, or the last fragment is missing
}

// Leg is one watch on one stream. Known is the highest revision that the client knew when it sent the
// request; Created is the revision in the header of the created answer.
type Leg struct {
	Request   Request
	Known     int64
	Created   int64
	Responses []Response
}

// Recording is a watch as its user sees it: when a leg breaks, the next one resumes there.
// The last leg of a Complete recording received everything up to the end of the history.
type Recording struct {
	Name     string
	Legs     []Leg
	Complete bool
}

// next is the revision from which the leg is to be continued.
func (l *Leg) next() int64 {
	next := l.Request.Start
	if next == 0 {
		next = l.Created + 1
	}
	for _, r := range l.Responses {
		if n := len(r.Events); n > 0 {
			next = max(next, r.Events[n-1].KV.Mod+1)
		} else if r.Progress {
			next = max(next, r.Revision+1)
		}
	}
	return next
}

func (q *Request) covers(key string) bool {
	switch q.End {
	case "":
		return key == q.Key
	case "\x00":
		return key >= q.Key
	}
	return key >= q.Key && key < q.End
}

func (q *Request) wants(e *Event) bool {
	return q.covers(e.KV.Key) && !(q.NoPut && !e.Delete) && !(q.NoDelete && e.Delete)
}

// Truth is what was actually written: the events of every revision from 2 on.
type Truth struct {
	revisions [][]Event // events of revision r are at r-2
	Compacted int64     // the highest revision compacted to
	// All revisions compacted to.
	Compactions []int64
}

// Last is the newest revision.
func (t *Truth) Last() int64 { return int64(len(t.revisions)) + 1 }

func (t *Truth) at(revision int64) []Event {
	if revision < 2 || revision > t.Last() {
		return nil
	}
	return t.revisions[revision-2]
}

// NewTruth replays the events of all revisions in order. It takes from them only which keys were put
// or deleted with which values; it computes versions, creations and previous values itself, and they
// must agree with the events.
func NewTruth(events []Event) (*Truth, error) {
	truth := &Truth{}
	state := map[string]KV{}
	for _, event := range events {
		switch last := truth.Last(); {
		case event.KV.Mod == last+1:
			truth.revisions = append(truth.revisions, nil)
		case event.KV.Mod != last || last == 1:
			return nil, fmt.Errorf("after revision %d came %s", last, &event)
		}
		now := step(state, event)
		if now.KV != event.KV {
			return nil, fmt.Errorf("%s was reported as %s", &now, &event)
		}
		at := &truth.revisions[len(truth.revisions)-1]
		*at = append(*at, now)
	}
	return truth, nil
}

// step applies one change and returns the complete event.
func step(state map[string]KV, change Event) Event {
	key := change.KV.Key
	before, existed := state[key]
	event := Event{Delete: change.Delete, KV: KV{Key: key, Mod: change.KV.Mod}}
	if existed {
		event.Prev = &before
	}
	if change.Delete {
		delete(state, key)
		return event
	}
	event.KV.Value = change.KV.Value
	event.KV.Version = before.Version + 1
	event.KV.Create = before.Create
	if !existed {
		event.KV.Create = change.KV.Mod
	}
	state[key] = event.KV
	return event
}

// Wanted returns all events that a request must receive, from one revision to another.
func (t *Truth) Wanted(q *Request, from, to int64) (events []Event) {
	for revision := max(from, 2); revision <= min(to, t.Last()); revision++ {
		for _, event := range t.at(revision) {
			if q.wants(&event) {
				events = append(events, event)
			}
		}
	}
	return events
}

// find returns the true event of a revision and key, and its place in the revision.
func (t *Truth) find(revision int64, key string) (*Event, int) {
	events := t.at(revision)
	place := slices.IndexFunc(events, func(e Event) bool { return e.KV.Key == key })
	if place < 0 {
		return nil, -1
	}
	return &events[place], place
}

func (e *Event) String() string {
	if e.Delete {
		return fmt.Sprintf("delete %s@%d", e.KV.Key, e.KV.Mod)
	}
	return "put " + e.KV.String()
}

func (k *KV) String() string {
	if k == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s=%.24s@%d (created %d, version %d)", k.Key, k.Value, k.Mod, k.Create, k.Version)
}

func (q *Request) String() string {
	text := fmt.Sprintf("[%s,%q) from %d", q.Key, q.End, q.Start)
	for _, option := range []struct {
		name string
		on   bool
	}{{"no puts", q.NoPut}, {"no deletes", q.NoDelete}, {"prev", q.Prev}} {
		if option.on {
			text += ", " + option.name
		}
	}
	return text
}
