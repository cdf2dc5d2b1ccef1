package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Decision is the result of a search.
type Decision int

const (
	Linearizable Decision = iota
	Violated
	Undecided // the time limit was reached
)

// search looks for an order of the operations of a partition that respects their times and in which every answer is the
// one that the model gives. It proceeds in the order of time: the next operation is one that began before the first
// return of those not yet placed.
//
//   - An answered operation that changes nothing is placed as soon as its answer fits. Placing it earlier than necessary
//     never excludes an order of the others.
//   - Operations without an answer never have to be placed. They are tried when answered ones were.
//   - A state that was reached before with the same operations placed is not visited again.
//   - The first attempt places operations only in the order of their revisions, and of those without an answer only the
//     ones that the timeline knows. What it finds is an order like any other, and it hardly ever has to guess. If it finds
//     none, a second attempt tries every order.
type search struct {
	model    model
	ops      []*Op   // have to be placed; by time of call
	unknown  []*Op   // may be placed; by time of call
	ranks    []int64 // of ops, in the order of revisions; 0: without a revision
	byRank   []int
	rankAt   []int // the place of an operation in byRank
	ordered  bool  // only in the order of revisions
	lowRank  int   // all before it in byRank are placed
	placed   []bool
	used     []bool // of unknown
	left     int
	low      int // all operations before it are placed
	visited  map[string]bool
	deadline time.Time
	steps    int
	expired  bool
	best     int    // fewest operations that were left
	why      string // what could not be placed then
}

// Search decides whether a partition is linearizable, and describes where the search got stuck if it is not.
func Search(keys []string, ops []*Op, limit time.Duration) (Decision, string) {
	if s := newSearch(keys, ops, true, limit); s.run() {
		return Linearizable, ""
	}
	s := newSearch(keys, ops, false, limit)
	switch {
	case s.run():
		return Linearizable, ""
	case s.expired:
		return Undecided, fmt.Sprintf("no result after %v; %d of %d operations were placed", limit, len(s.ops)-s.best, len(s.ops))
	}
	return Violated, s.why
}

func newSearch(keys []string, ops []*Op, ordered bool, limit time.Duration) *search {
	s := &search{model: model{keys: slices.Sorted(slices.Values(keys))}, visited: map[string]bool{},
		deadline: time.Now().Add(limit), best: math.MaxInt, ordered: ordered}
	for _, o := range ops {
		if o.Outcome == Done || ordered && o.Outcome == Unknown && o.Hint > 0 {
			s.ops = append(s.ops, o)
		} else if o.Outcome == Unknown {
			s.unknown = append(s.unknown, o)
		}
	}
	byCall := func(a, b *Op) int { return compareInt(a.Call, b.Call) }
	slices.SortFunc(s.ops, byCall)
	slices.SortFunc(s.unknown, byCall)
	s.placed, s.used, s.left = make([]bool, len(s.ops)), make([]bool, len(s.unknown)), len(s.ops)
	s.rank()
	return s
}

func (s *search) run() bool { return s.from(make([]slot, len(s.model.keys))) }

// rank sorts the operations whose revisions are known. A read comes after the write of its revision.
func (s *search) rank() {
	s.ranks = make([]int64, len(s.ops))
	for i, o := range s.ops {
		revision := max(o.Revision, o.Hint)
		if revision == 0 {
			continue
		}
		s.ranks[i] = 2 * revision
		if o.Outcome == Done && !o.wrote() {
			s.ranks[i]++
		}
		s.byRank = append(s.byRank, i)
	}
	slices.SortFunc(s.byRank, func(a, b int) int { return compareInt(s.ranks[a], s.ranks[b]) })
	s.rankAt = make([]int, len(s.ops))
	for at, i := range s.byRank {
		s.rankAt[i] = at
	}
}

// isDue says whether no operation of a lower revision is left.
func (s *search) isDue(i int) bool {
	for s.lowRank < len(s.byRank) && s.placed[s.byRank[s.lowRank]] {
		s.lowRank++
	}
	return !s.ordered || s.ranks[i] == 0 || s.lowRank == len(s.byRank) || s.ranks[i] <= s.ranks[s.byRank[s.lowRank]]
}

// until is the time before which an operation was executed.
func (o *Op) until() int64 {
	if o.Outcome == Unknown {
		return math.MaxInt64
	}
	return o.Return
}

// after returns the states to which the operation may lead; none if its answer does not fit.
func (s *search) after(o *Op, state []slot) [][]slot {
	if o.Outcome == Unknown {
		return s.model.guess(o, state)
	}
	if next, fits := s.model.answer(o, state); fits {
		return [][]slot{next}
	}
	return nil
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// candidates returns the operations that may come next, and the first return among those not yet placed.
func (s *search) candidates() (next []int, first int64) {
	first = math.MaxInt64
	for s.low < len(s.ops) && s.placed[s.low] {
		s.low++
	}
	for i := s.low; i < len(s.ops) && s.ops[i].Call <= first; i++ {
		if s.placed[i] {
			continue
		}
		first = min(first, s.ops[i].until())
		if s.isDue(i) {
			next = append(next, i)
		}
	}
	return next, first
}

func (s *search) place(i int) {
	s.placed[i] = true
	s.left--
}

func (s *search) remove(i int) {
	s.placed[i] = false
	s.left++
	s.low = min(s.low, i)
	if s.ranks[i] > 0 {
		s.lowRank = min(s.lowRank, s.rankAt[i])
	}
}

// absorb places all operations that change nothing and whose answers fit, and returns them.
func (s *search) absorb(state []slot) (absorbed []int) {
	for {
		next, _ := s.candidates()
		before := len(absorbed)
		for _, i := range next {
			if s.ops[i].Outcome == Unknown || s.ops[i].wrote() {
				continue
			}
			if _, fits := s.model.answer(s.ops[i], state); fits {
				s.place(i)
				absorbed = append(absorbed, i)
			}
		}
		if len(absorbed) == before {
			return absorbed
		}
	}
}

// from continues the search from a state. It returns whether everything could be placed, and undoes what it did if not.
func (s *search) from(state []slot) bool {
	absorbed := s.absorb(state)
	if s.left == 0 {
		return true
	}
	if !s.seen(state) && s.continues(state) {
		return true
	}
	for _, i := range absorbed {
		s.remove(i)
	}
	return false
}

func (s *search) continues(state []slot) bool {
	if s.steps++; s.steps%256 == 0 && time.Now().After(s.deadline) {
		s.expired = true
	}
	next, first := s.candidates()
	s.note(next, state)
	for _, i := range next {
		if s.expired {
			return false
		}
		for _, after := range s.after(s.ops[i], state) {
			s.place(i)
			if s.from(after) {
				return true
			}
			s.remove(i)
		}
	}
	if s.ordered {
		return false // the timeline does not know the others
	}
	for i, o := range s.unknown {
		if o.Call > first || s.expired {
			break
		}
		if s.used[i] {
			continue
		}
		s.used[i] = true
		for _, after := range s.model.guess(o, state) {
			if s.from(after) {
				return true
			}
		}
		s.used[i] = false
	}
	return false
}

// seen says whether the search was here before, and remembers that it was.
func (s *search) seen(state []slot) bool {
	key := binary.AppendUvarint(nil, uint64(s.low))
	last := len(s.placed) - 1
	for last >= s.low && !s.placed[last] {
		last--
	}
	for i := s.low; i <= last; i += 8 {
		bits := byte(0)
		for n := i; n < i+8 && n <= last; n++ {
			if s.placed[n] {
				bits |= 1 << (n - i)
			}
		}
		key = append(key, bits)
	}
	key = append(key, '|')
	for i, used := range s.used {
		if used {
			key = binary.AppendUvarint(key, uint64(i)+1)
		}
	}
	key = append(key, 0)
	for i := range state {
		key = append(key, state[i].value...)
		key = append(key, 0)
		for _, n := range []int64{state[i].version, state[i].create, state[i].mod, state[i].lease} {
			key = binary.AppendVarint(key, n)
		}
	}
	if s.visited[string(key)] {
		return true
	}
	s.visited[string(key)] = true
	return false
}

// note remembers what could not be placed when the fewest operations were left.
func (s *search) note(next []int, state []slot) {
	if s.left >= s.best {
		return
	}
	s.best = s.left
	s.why = fmt.Sprintf("%d of %d operations can be placed; then the state is", len(s.ops)-s.left, len(s.ops))
	for i := range state {
		if state[i].exists() {
			kv := KV{s.model.keys[i], state[i].value, state[i].create, state[i].mod, state[i].version, state[i].lease}
			s.why += "\n    " + kv.String()
		}
	}
	s.why += "\n  and the next operation is one of"
	for _, i := range next[:min(len(next), 12)] {
		s.why += "\n    " + s.ops[i].String()
	}
}
