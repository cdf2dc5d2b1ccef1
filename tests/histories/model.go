package main

import "slices"

// unknownRevision is that of a write whose answer is missing.
const unknownRevision = -1

// slot is the state of one key in the model. The zero value is a key that does not exist.
type slot struct {
	value       string
	version     int64
	create, mod int64 // unknownRevision: written by an operation whose answer is missing
	lease       int64
}

func (s *slot) exists() bool { return s.version > 0 }

// model executes operations on the keys of one partition. A state is one slot for each key.
type model struct {
	keys []string // sorted
}

func (m *model) find(key string) int {
	i, found := slices.BinarySearch(m.keys, key)
	if !found {
		return -1
	}
	return i
}

// truth of a condition that compares a revision that is not known.
type truth int

const (
	no truth = iota
	yes
	either
)

func isTrue(condition bool) truth {
	if condition {
		return yes
	}
	return no
}

func relates[T int64 | string](a T, relation string, b T) truth {
	switch relation {
	case "=":
		return isTrue(a == b)
	case "!=":
		return isTrue(a != b)
	case "<":
		return isTrue(a < b)
	}
	return isTrue(a > b)
}

func (c *Compare) holds(s *slot) truth {
	number := s.version
	switch c.Field {
	case "value":
		if !s.exists() {
			return no // as in etcd, whatever the relation
		}
		return relates(s.value, c.Relation, c.Text)
	case "create":
		number = s.create
	case "mod":
		number = s.mod
	}
	if number == unknownRevision {
		return either
	}
	return relates(number, c.Relation, c.Number)
}

func (m *model) condition(o *Op, state []slot) truth {
	all := yes
	for i := range o.If {
		var s slot
		if n := m.find(o.If[i].Key); n >= 0 {
			s = state[n]
		}
		switch o.If[i].holds(&s) {
		case no:
			return no
		case either:
			all = either
		}
	}
	return all
}

// matches says whether an answer may show this slot.
func (k *KV) matches(s *slot) bool {
	return s.exists() && k.Value == s.value && k.Lease == s.lease && (k.Version == 0 || k.Version == s.version) &&
		agree(k.Create, s.create) && agree(k.Mod, s.mod)
}

func agree(got, known int64) bool { return got == 0 || known == unknownRevision || got == known }

// answer executes an answered operation on a state. It returns false if the answer is not the one of this state.
func (m *model) answer(o *Op, state []slot) ([]slot, bool) {
	if c := m.condition(o, state); c != either && (c == yes) != o.Succeeded {
		return nil, false
	}
	next := state
	for i, a := range o.ran() {
		result := o.result(i)
		if !m.shows(&a, &result, next) {
			return nil, false
		}
		if a.Kind != "get" {
			next = m.change(&a, o.Revision, next)
		}
	}
	return next, true
}

// shows says whether the result of an action fits the state before it.
func (m *model) shows(a *Action, result *Result, state []slot) bool {
	if a.Kind == "put" && !a.Prev {
		return true
	}
	found := 0
	for i, key := range m.keys {
		if !a.covers(key) || !state[i].exists() {
			continue
		}
		if a.Kind == "get" || a.Prev {
			at := slices.IndexFunc(result.KVs, func(kv KV) bool { return kv.Key == key })
			if at < 0 || !result.KVs[at].matches(&state[i]) {
				return false
			}
		}
		found++
	}
	if a.Kind == "delete" && result.Deleted != int64(found) {
		return false
	}
	return a.Kind == "delete" && !a.Prev || len(result.KVs) == found
}

// change returns the state after a put or delete, without changing the old one.
func (m *model) change(a *Action, revision int64, state []slot) []slot {
	if revision == 0 {
		revision = unknownRevision
	}
	next := slices.Clone(state)
	for i, key := range m.keys {
		if !a.covers(key) {
			continue
		}
		if a.Kind == "delete" {
			next[i] = slot{}
			continue
		}
		s := &next[i]
		s.version++
		s.value, s.lease, s.mod = a.Value, a.Lease, revision
		if s.version == 1 {
			s.create = revision
		}
	}
	return next
}

// guess returns the states to which an operation without an answer may lead; none if it would change nothing.
func (m *model) guess(o *Op, state []slot) (states [][]slot) {
	condition := m.condition(o, state)
	for _, branch := range []struct {
		actions  []Action
		possible bool
	}{{o.Then, condition != no}, {o.Else, condition != yes}} {
		if !branch.possible {
			continue
		}
		next := state
		for i := range branch.actions {
			if branch.actions[i].Kind != "get" {
				next = m.change(&branch.actions[i], o.Hint, next)
			}
		}
		if !slices.Equal(next, state) {
			states = append(states, next)
		}
	}
	return states
}
