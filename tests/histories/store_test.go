package main

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"vigil/tests/watch"
)

// store is a small etcd for tests of the checkers. It executes one operation after the other and is always right; tests
// plant faults by changing it or what was recorded.
type store struct {
	revision int64
	kvs      map[string]KV
	events   []Event
	now      int64
	doubled  string // a put of this value is executed once more after the next write
	lost     string // a put of this value is acknowledged and not executed
	torn     string // of a transaction with this value only the first write is executed
	again    *Op
}

func newStore() *store { return &store{revision: 1, kvs: map[string]KV{}} }

func (s *store) read(a *Action) (kvs []KV) {
	for key, kv := range s.kvs {
		if a.covers(key) {
			kvs = append(kvs, kv)
		}
	}
	slices.SortFunc(kvs, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	return kvs
}

func (s *store) holds(c *Compare) bool {
	kv := s.kvs[c.Key]
	return c.holds(&slot{kv.Value, kv.Version, kv.Create, kv.Mod, kv.Lease}) == yes
}

func (s *store) event(delete bool, kv KV) {
	s.events = append(s.events, Event{Delete: delete, KV: kv, Seen: s.now + 1})
}

// execute runs an operation and fills in its answer.
func (s *store) execute(o *Op) {
	o.Succeeded = !slices.ContainsFunc(o.If, func(c Compare) bool { return !s.holds(&c) })
	wrote := false
	for i, a := range o.ran() {
		before := s.read(&a)
		result := Result{}
		if a.Kind == "get" || a.Prev {
			result.KVs = before
		}
		if a.Kind == "delete" {
			result.Deleted = int64(len(before))
		}
		o.Results = append(o.Results, result)
		if a.Value != "" && (a.Value == s.lost || a.Value == s.torn && i > 0) {
			wrote = wrote || a.Value == s.lost
			continue
		}
		wrote = s.write(&a, before) || wrote
	}
	if wrote {
		s.revision++
	}
	o.Revision = s.revision
	s.repeat(o, wrote)
}

func (s *store) write(a *Action, before []KV) bool {
	revision := s.revision + 1
	if a.Kind == "put" {
		kv := s.kvs[a.Key]
		kv = KV{a.Key, a.Value, kv.Create, revision, kv.Version + 1, a.Lease}
		if kv.Create == 0 {
			kv.Create = revision
		}
		s.kvs[a.Key] = kv
		s.event(false, kv)
		return true
	}
	if a.Kind == "get" {
		return false
	}
	for _, kv := range before {
		delete(s.kvs, kv.Key)
		s.event(true, KV{Key: kv.Key, Mod: revision})
	}
	return len(before) > 0
}

// repeat executes the doubled put again, as a client would that repeats it after a lost answer.
func (s *store) repeat(o *Op, wrote bool) {
	if again := s.again; again != nil && wrote {
		s.again = nil
		s.execute(&Op{Then: again.Then})
	}
	if s.doubled != "" && len(o.Then) > 0 && o.Then[0].Value == s.doubled {
		s.again, s.doubled = o, ""
	}
}

// vanish deletes the keys of a lease.
func (s *store) vanish(lease int64) {
	s.revision++
	for key, kv := range s.kvs {
		if kv.Lease == lease {
			delete(s.kvs, key)
			s.event(true, KV{Key: key, Mod: s.revision})
		}
	}
}

// randomOps makes operations of concurrent clients on a few keys, some of which are never answered.
func randomOps(random *rand.Rand, clients, count int) []*Op {
	free := make([]int64, clients)
	var ops []*Op
	for n := range count {
		c := n % clients
		o := &Op{Client: fmt.Sprint("c", c), Outcome: Done, Call: free[c] + random.Int63n(1000)}
		o.Return = o.Call + 2 + random.Int63n(2000)
		free[c] = o.Return + 1
		key := func() string { return fmt.Sprintf("h/0/%d", random.Intn(4)) }
		value := fmt.Sprint("v", n)
		switch random.Intn(8) {
		case 0, 1, 2:
			o.Kind, o.Then = "put", []Action{{Kind: "put", Key: key(), Value: value, Prev: n%2 == 0}}
		case 3:
			o.Kind, o.Then = "delete", []Action{{Kind: "delete", Key: key()}}
		case 4:
			o.Kind = "txn"
			o.If = []Compare{{Key: key(), Field: "version", Relation: "<", Number: 3}}
			o.Then = []Action{{Kind: "put", Key: "h/0/a", Value: value}, {Kind: "put", Key: "h/0/b", Value: value}}
			o.Else = []Action{{Kind: "get", Key: "h/0/a"}, {Kind: "delete", Key: o.If[0].Key}}
		case 5:
			o.Kind, o.Then = "list", []Action{{Kind: "get", Key: "h/0/", Prefix: true}}
		default:
			o.Kind, o.Then = "get", []Action{{Kind: "get", Key: key()}}
		}
		if random.Intn(40) == 0 {
			o.Outcome = Unknown
		}
		ops = append(ops, o)
	}
	return ops
}

// played executes operations at random times between call and return. Those without an answer are executed later, or
// never, and their answers are removed.
func played(random *rand.Rand, s *store, ops []*Op) *History {
	type turn struct {
		at int64
		op *Op
	}
	var turns []turn
	for _, o := range ops {
		at := o.Call + 1 + random.Int63n(o.Return-o.Call)
		if o.Outcome == Unknown {
			at += random.Int63n(5000)
		}
		if o.Outcome == Done || random.Intn(2) == 0 {
			turns = append(turns, turn{at, o})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return compareInt(a.at, b.at) })
	for _, t := range turns {
		s.now = t.at
		s.execute(t.op)
		if t.op.Outcome == Unknown {
			t.op.Succeeded, t.op.Results, t.op.Revision = false, nil, 0
		}
	}
	return &History{Ops: ops, Events: s.events, Watches: []*watch.Recording{recorded(s.events)}}
}

// recorded is a complete watch of everything, with one response for each revision.
func recorded(events []Event) *watch.Recording {
	leg := watch.Leg{Request: watch.Request{Key: "h/", End: "h0", Start: 1}}
	for i := range events {
		e := events[i].converted()
		if n := len(leg.Responses); n > 0 && leg.Responses[n-1].Revision == e.KV.Mod {
			leg.Responses[n-1].Events = append(leg.Responses[n-1].Events, e)
			continue
		}
		leg.Responses = append(leg.Responses, watch.Response{Revision: e.KV.Mod, Events: []watch.Event{e}})
	}
	return &watch.Recording{Name: "watch", Legs: []watch.Leg{leg}, Complete: true}
}
