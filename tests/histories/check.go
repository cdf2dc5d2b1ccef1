package main

import (
	"fmt"
	"time"

	"vigil/tests/watch"
)

// History is everything that was recorded with one server in one round.
type History struct {
	Server    string
	Ops       []*Op
	Events    []Event // of one watch of everything
	Watches   []*watch.Recording
	Informers []*Informer
	Remaining Remaining
}

// Verdict is the result of all checks of a history.
type Verdict struct {
	Linearizability
	Revisions  int64
	Watched    int // events that were compared
	Violations []string
}

// Passed is false as well if something could not be decided.
func (v *Verdict) Passed() bool { return len(v.Violations) == 0 && v.Undecided == 0 }

// Check runs all checks. Each partition is searched within the limit.
func Check(h *History, limit time.Duration) *Verdict {
	v := &Verdict{}
	t, err := NewTimeline(h.Events, h.Ops)
	if err != nil {
		v.Linearizability = CheckLinearizability(h.Ops, limit)
		v.Violations = append(v.Linearizability.Violations, fmt.Sprintf("the history contradicts itself: %v", err))
		return v
	}
	writers, found := CheckRevisions(t, h.Ops)
	v.Linearizability = CheckLinearizability(h.Ops, limit) // with the revisions that were found
	v.Revisions = t.last()
	v.Violations = append(v.Linearizability.Violations, found...)
	v.Violations = append(v.Violations, CheckLeases(t, h.Ops, writers, h.Remaining)...)
	v.Violations = append(v.Violations, CheckLocks(t, h.Ops)...)
	for _, recording := range h.Watches {
		for _, leg := range recording.Legs {
			for _, response := range leg.Responses {
				v.Watched += len(response.Events)
			}
		}
		for _, fault := range watch.Check(t.truth, watch.Rules{}, recording) {
			v.Violations = append(v.Violations, fmt.Sprintf("watch, %s: %s", fault.Guarantee, fault.Text))
		}
	}
	for _, informer := range h.Informers {
		v.Violations = append(v.Violations, CheckInformer(t, informer)...)
	}
	return v
}
