package watch

import (
	"fmt"
	"slices"
	"testing"
)

// planted is a short history and a correct recording of it, into which tests plant a fault.
type planted struct {
	truth     *Truth
	recording *Recording
}

func (p *planted) leg() *Leg { return &p.recording.Legs[0] }

// newPlanted: revision 2 makes a, b, c in one transaction; 3 to 12 change them; 13 deletes b.
func newPlanted(t *testing.T) *planted {
	t.Helper()
	var events []Event
	state := map[string]KV{}
	add := func(revision int64, key, value string, deleted bool) {
		events = append(events, step(state, Event{Delete: deleted, KV: KV{Key: key, Value: value, Mod: revision}}))
	}
	for _, key := range []string{"b", "a", "c"} {
		add(2, key, "first", false)
	}
	for revision := int64(3); revision <= 12; revision++ {
		add(revision, []string{"a", "b"}[revision%2], fmt.Sprint(revision), false)
	}
	add(13, "b", "", true)
	truth, err := NewTruth(events)
	if err != nil {
		t.Fatal(err)
	}
	request := Request{Key: "a", End: "c", Start: 2, Prev: true}
	leg := Leg{Request: request, Created: 13}
	for revision := int64(2); revision <= 13; revision++ {
		leg.Responses = append(leg.Responses,
			Response{Revision: revision, Events: truth.Wanted(&request, revision, revision)})
	}
	return &planted{truth, &Recording{Name: "planted", Legs: []Leg{leg}, Complete: true}}
}

func (p *planted) check() []Fault { return Check(p.truth, Rules{}, p.recording) }

func TestCorrectRecordingHasNoFault(t *testing.T) {
	p := newPlanted(t)
	leg := p.leg()
	leg.Responses = slices.Insert(leg.Responses, 5, Response{Revision: 6, Progress: true})
	// Several revisions in one response, as for a slow watch.
	merged := Response{Revision: 13, Events: slices.Concat(leg.Responses[8].Events, leg.Responses[9].Events)}
	leg.Responses = slices.Replace(leg.Responses, 8, 10, merged)
	if faults := p.check(); len(faults) != 0 {
		t.Error(faults)
	}
}

// Each fault is one that a server could have; the checker must name the violated guarantee.
func TestPlantedFaultsAreSeen(t *testing.T) {
	for _, test := range []struct {
		name  string
		want  Guarantee
		plant func(p *planted)
	}{
		{"two responses change places", Ordered, func(p *planted) {
			r := p.leg().Responses
			r[3], r[4] = r[4], r[3]
		}},
		{"events of a transaction change places", Ordered, func(p *planted) {
			e := p.leg().Responses[0].Events
			e[0], e[1] = e[1], e[0]
		}},
		{"a response comes twice", Unique, func(p *planted) {
			p.leg().Responses = slices.Insert(p.leg().Responses, 4, p.leg().Responses[3])
		}},
		{"a response is lost", Reliable, func(p *planted) {
			p.leg().Responses = slices.Delete(p.leg().Responses, 6, 7)
		}},
		{"the last response is lost", Reliable, func(p *planted) {
			p.leg().Responses = p.leg().Responses[:len(p.leg().Responses)-1]
		}},
		{"an event of a transaction is lost", Reliable, func(p *planted) {
			p.leg().Responses[0].Events = p.leg().Responses[0].Events[:1]
		}},
		{"another value", Reliable, func(p *planted) {
			p.leg().Responses[4].Events[0].KV.Value = "other"
		}},
		{"an event that never happened", Reliable, func(p *planted) {
			p.leg().Responses[4].Events[0].KV.Key = "aa"
		}},
		{"events after the end of the watch", Reliable, func(p *planted) {
			p.leg().Responses = slices.Insert(p.leg().Responses, 4, Response{Canceled: true})
		}},
		{"a revision is split", Atomic, func(p *planted) {
			first := p.leg().Responses[0]
			p.leg().Responses[0].Events = first.Events[:1]
			first.Events = first.Events[1:]
			p.leg().Responses = slices.Insert(p.leg().Responses, 1, first)
		}},
		{"the watch begins too late", Resumable, func(p *planted) {
			p.leg().Responses = p.leg().Responses[1:]
		}},
		{"the watch begins too early", Resumable, func(p *planted) { p.leg().Request.Start = 4 }},
		{"a watch from now begins in the past", Resumable, func(p *planted) {
			p.leg().Request.Start = 0
			p.leg().Known = 2
		}},
		{"the next leg begins too late", Resumable, func(p *planted) {
			leg := *p.leg()
			p.leg().Responses = p.leg().Responses[:5]
			leg.Request.Start = 8
			leg.Responses = leg.Responses[6:]
			p.recording.Legs = append(p.recording.Legs, leg)
		}},
		{"a mark too early", Bookmarkable, func(p *planted) {
			p.leg().Responses = slices.Insert(p.leg().Responses, 4, Response{Revision: 6, Progress: true})
		}},
		{"a mark goes back", Bookmarkable, func(p *planted) {
			p.leg().Responses = slices.Insert(p.leg().Responses, 6, Response{Revision: 7, Progress: true},
				Response{Revision: 6, Progress: true})
		}},
		{"a header below its events", Bookmarkable, func(p *planted) { p.leg().Responses[6].Revision-- }},
		{"a put that was filtered", Filtered, func(p *planted) { p.leg().Request.NoPut = true }},
		{"a delete that was filtered", Filtered, func(p *planted) { p.leg().Request.NoDelete = true }},
		{"a key outside of the range", Filtered, func(p *planted) { p.leg().Request.End = "" }},
		{"an update reported as a creation", Creations, func(p *planted) {
			e := &p.leg().Responses[4].Events[0]
			e.KV.Create, e.KV.Version = e.KV.Mod, 1
		}},
		{"another previous value", Previous, func(p *planted) {
			before := *p.leg().Responses[4].Events[0].Prev
			before.Value = "other"
			p.leg().Responses[4].Events[0].Prev = &before
		}},
		{"no previous value", Previous, func(p *planted) { p.leg().Responses[4].Events[0].Prev = nil }},
		{"a previous value of a creation", Previous, func(p *planted) {
			p.leg().Responses[0].Events[0].Prev = &KV{Key: "b"}
		}},
		{"previous values that were not requested", Previous, func(p *planted) { p.leg().Request.Prev = false }},
		{"torn fragments", Contiguous, func(p *planted) { p.leg().Responses[3].Torn = true }},
		{"compacted though not below it", Compacted, func(p *planted) {
			p.truth.Compacted = 6
			p.recording.Complete = false
			p.leg().Responses = append(p.leg().Responses[:5], Response{Canceled: true, Compacted: 6})
		}},
		{"compacted by a compaction that never happened", Compacted, func(p *planted) {
			p.recording.Complete = false
			p.leg().Responses = append(p.leg().Responses[:5], Response{Canceled: true, Compacted: 12})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlanted(t)
			test.plant(p)
			faults := p.check()
			if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Guarantee == test.want }) {
				t.Errorf("no fault of %q in %v", test.want, faults)
			}
		})
	}
}

func TestDifferencesOfEtcdAreAcceptedOnlyForEtcd(t *testing.T) {
	p := newPlanted(t)
	p.leg().Responses[4].Events[0].Prev = nil
	if faults := Check(p.truth, Rules{MissingPrev: true}, p.recording); len(faults) != 0 {
		t.Error(faults)
	}
}

// A cut in the middle and a compaction after the second leg are not faults.
func TestLegsThatJoinHaveNoFault(t *testing.T) {
	p := newPlanted(t)
	p.truth.Compacted = 9
	all := p.leg().Responses
	legs := []Leg{*p.leg(), *p.leg(), *p.leg()}
	legs[0].Responses = all[:2]
	legs[1].Request.Start = 4
	legs[1].Responses = append(slices.Clone(all[2:4]), Response{Canceled: true, Compacted: 9})
	legs[2].Request.Start = 9
	legs[2].Responses = all[7:]
	p.recording.Legs = legs
	if faults := p.check(); len(faults) != 0 {
		t.Error(faults)
	}
}

func TestInconsistentHistoryIsRefused(t *testing.T) {
	good := func() []Event {
		p := newPlanted(t)
		return p.truth.Wanted(&Request{Key: "\x00", End: "\x00"}, 2, 13)
	}
	for name, plant := range map[string]func(e []Event) []Event{
		"a revision is missing": func(e []Event) []Event { return slices.Delete(e, 5, 6) },
		"a revision goes back":  func(e []Event) []Event { return append(e, e[4]) },
		"a wrong version":       func(e []Event) []Event { e[5].KV.Version++; return e },
		"a wrong creation":      func(e []Event) []Event { e[5].KV.Create++; return e },
		"begins with nothing":   func(e []Event) []Event { return e[3:] },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewTruth(good()); err != nil {
				t.Fatal(err)
			}
			if _, err := NewTruth(plant(good())); err == nil {
				t.Error("not detected")
			}
		})
	}
}

func TestDeletesOfACompactedRevisionMayBeLostOnlyByOldEtcd(t *testing.T) {
	p := newPlanted(t)
	p.leg().Responses = p.leg().Responses[:11]
	p.truth.Compacted, p.truth.Compactions = 13, []int64{13}
	if faults := Check(p.truth, Rules{LostDeletes: true}, p.recording); len(faults) != 0 {
		t.Error(faults)
	}
	if faults := p.check(); len(faults) == 0 {
		t.Error("the lost delete was accepted")
	}
	p.truth.Compactions = []int64{12}
	if faults := Check(p.truth, Rules{LostDeletes: true}, p.recording); len(faults) == 0 {
		t.Error("the lost delete of another revision was accepted")
	}
}
