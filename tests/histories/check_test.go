package main

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"vigil/tests/watch"
)

const enough = time.Minute

func expect(t *testing.T, found []string, want string) {
	t.Helper()
	if !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, want) }) {
		t.Errorf("not found: %q\nfound: %q", want, found)
	}
}

func TestCorrectHistoriesAreAccepted(t *testing.T) {
	for seed := range int64(50) {
		random := rand.New(rand.NewSource(seed))
		h := played(random, newStore(), randomOps(random, 2+random.Intn(7), 300))
		if v := Check(h, enough); !v.Passed() || v.Operations == 0 || v.Watched == 0 {
			t.Fatalf("seed %d: %+v", seed, v)
		}
	}
}

func TestPartitionsAreKeysThatNoOperationJoins(t *testing.T) {
	one := func(key string) *Op { return &Op{Outcome: Done, Then: []Action{{Kind: "put", Key: key, Value: key}}} }
	ops := []*Op{one("a"), one("b"), one("c"), one("d/1"), one("d/2"), one("e"),
		{Outcome: Done, If: []Compare{{Key: "a"}}, Then: []Action{{Kind: "put", Key: "b"}}},
		{Outcome: Done, Then: []Action{{Kind: "get", Key: "d/", Prefix: true}}},
		{Outcome: Done, Then: []Action{{Kind: "put", Key: "e", Lease: 1}}}}
	var got []string
	for _, p := range Partitions(ops) {
		got = append(got, fmt.Sprint(p.Keys, len(p.Ops)))
	}
	slices.Sort(got)
	if want := []string{"[a b] 3", "[c] 1", "[d/1 d/2] 3"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// plant makes histories until the function has planted something, and returns it.
func plant(t *testing.T, change func(*rand.Rand, *History) bool) *History {
	t.Helper()
	for seed := range int64(100) {
		random := rand.New(rand.NewSource(seed))
		h := played(random, newStore(), randomOps(random, 4, 400))
		if change(random, h) {
			return h
		}
	}
	t.Fatal("nothing could be planted")
	return nil
}

// bothFind expects that the search and the check of revisions find a fault, each by itself.
func bothFind(t *testing.T, h *History, want string) {
	t.Helper()
	expect(t, CheckLinearizability(h.Ops, enough).Violations, "not linearizable")
	timeline, err := NewTimeline(h.Events, h.Ops)
	if err != nil {
		t.Fatal(err)
	}
	_, found := CheckRevisions(timeline, h.Ops)
	expect(t, found, want)
}

// staleRead gives a read the answer of a much older one.
func staleRead(_ *rand.Rand, h *History) bool {
	for _, old := range h.Ops {
		if old.Kind != "get" || old.Outcome != Done || len(old.result(0).KVs) == 0 {
			continue
		}
		for _, o := range h.Ops {
			if o.Kind == "get" && o.Outcome == Done && o.Then[0].Key == old.Then[0].Key && o.Revision > old.Revision+30 {
				o.Results, o.Revision = old.Results, old.Revision
				return true
			}
		}
	}
	return false
}

func TestStaleReadIsFound(t *testing.T) {
	bothFind(t, plant(t, staleRead), "stale: ")
}

func TestStaleReadWithAFreshRevisionIsFound(t *testing.T) {
	h := plant(t, func(random *rand.Rand, h *History) bool {
		revisions := map[*Op]int64{}
		for _, o := range h.Ops {
			revisions[o] = o.Revision
		}
		planted := staleRead(random, h)
		for _, o := range h.Ops {
			o.Revision = revisions[o]
		}
		return planted
	})
	bothFind(t, h, "wrong answer: ")
}

// replayed executes random operations on a store with a planted fault, which concerns the value that choose returns.
func replayed(t *testing.T, choose func(ops []*Op) string, fault func(*store, string)) *History {
	t.Helper()
	for seed := range int64(100) {
		random := rand.New(rand.NewSource(seed))
		ops := randomOps(random, 4, 400)
		value := choose(ops)
		if value == "" {
			continue
		}
		s := newStore()
		fault(s, value)
		h := played(random, s, ops)
		// Reads that show the fault must follow.
		if CheckLinearizability(h.Ops, enough).Violations != nil {
			return h
		}
	}
	t.Fatal("nothing could be planted")
	return nil
}

func firstOf(kind string, outcome Outcome) func([]*Op) string {
	return func(ops []*Op) string {
		for _, o := range ops {
			if o.Kind == kind && o.Outcome == outcome {
				return o.Then[0].Value
			}
		}
		return ""
	}
}

func TestLostWriteIsFound(t *testing.T) {
	h := replayed(t, firstOf("put", Done), func(s *store, value string) { s.lost = value })
	expect(t, CheckLinearizability(h.Ops, enough).Violations, "not linearizable")
	expect(t, Check(h, enough).Violations, "contradicts itself") // its revision is missing
}

func TestWriteLostAtTheEndIsFound(t *testing.T) {
	h := plant(t, func(_ *rand.Rand, h *History) bool {
		last := h.Events[len(h.Events)-1].KV.Mod
		for h.Events[len(h.Events)-1].KV.Mod == last {
			h.Events = h.Events[:len(h.Events)-1]
		}
		return slices.ContainsFunc(h.Ops, func(o *Op) bool { return o.Revision == last && o.Outcome == Done })
	})
	expect(t, Check(h, enough).Violations, "lost: ")
}

func TestHalfATransactionIsFound(t *testing.T) {
	h := replayed(t, firstOf("txn", Done), func(s *store, value string) { s.torn = value })
	bothFind(t, h, "not what was written")
}

func TestRetryThatIsAppliedTwiceIsFound(t *testing.T) {
	h := replayed(t, firstOf("put", Done), func(s *store, value string) { s.doubled = value })
	bothFind(t, h, "applied twice")
	h = replayed(t, firstOf("put", Unknown), func(s *store, value string) { s.doubled = value })
	bothFind(t, h, "applied twice")
}

func TestRefusedWriteThatWasExecutedIsFound(t *testing.T) {
	h := plant(t, func(_ *rand.Rand, h *History) bool {
		for _, o := range h.Ops {
			if o.Kind == "put" && o.Outcome == Done {
				o.Outcome = Refused
				return true
			}
		}
		return false
	})
	expect(t, Check(h, enough).Violations, "refused, but written")
}

func TestWriteWithoutAWriterIsFound(t *testing.T) {
	h := plant(t, func(_ *rand.Rand, h *History) bool {
		h.Ops = slices.DeleteFunc(h.Ops, func(o *Op) bool { return o.Kind == "delete" })
		return true
	})
	expect(t, Check(h, enough).Violations, "no client wrote")
}

func TestFaultsOfWatchesAreFound(t *testing.T) {
	for name, change := range map[watch.Guarantee]func(r []watch.Response) []watch.Response{
		watch.Ordered: func(r []watch.Response) []watch.Response {
			r[5], r[6] = r[6], r[5]
			return r
		},
		watch.Unique:   func(r []watch.Response) []watch.Response { return slices.Insert(r, 6, r[5]) },
		watch.Reliable: func(r []watch.Response) []watch.Response { return slices.Delete(r, 5, 6) },
		watch.Resumable: func(r []watch.Response) []watch.Response {
			return slices.Delete(r, 0, 1)
		},
		watch.Bookmarkable: func(r []watch.Response) []watch.Response {
			return slices.Insert(r, 5, watch.Response{Revision: r[6].Revision, Progress: true})
		},
		watch.Atomic: func(r []watch.Response) []watch.Response {
			for i := range r {
				if len(r[i].Events) > 1 {
					rest := r[i]
					rest.Events = rest.Events[1:]
					r[i].Events = r[i].Events[:1]
					return slices.Insert(r, i+1, rest)
				}
			}
			return nil
		},
	} {
		h := plant(t, func(_ *rand.Rand, h *History) bool {
			leg := &h.Watches[0].Legs[0]
			changed := change(leg.Responses)
			leg.Responses = changed
			return changed != nil
		})
		expect(t, Check(h, enough).Violations, "watch, "+string(name)+": ")
	}
}

// The worst case for a search: everything at the same time, and an answer that fits no order.
func TestSearchWithoutTimeIsUndecidedAndNotPassed(t *testing.T) {
	var ops []*Op
	for n := range 40 {
		ops = append(ops, &Op{Outcome: Done, Succeeded: true, Call: 0, Return: 100,
			Then: []Action{{Kind: "put", Key: "h/0/0", Value: fmt.Sprint(n)}}})
	}
	ops = append(ops, &Op{Outcome: Done, Succeeded: true, Call: 101, Return: 102, Then: []Action{{Kind: "get", Key: "h/0/0"}}})
	v := Check(&History{Ops: ops}, 10*time.Millisecond)
	if v.Undecided != 1 || len(v.Linearizability.Violations) != 0 || v.Passed() {
		t.Errorf("%+v", v)
	}
}

const second = int64(time.Second)

// leaseHistory has a lease of two seconds with two keys, which vanish at a time.
func leaseHistory(vanish int64) (*History, *store) {
	s := newStore()
	grant := &Op{Kind: "grant", Outcome: Done, Call: 10, Return: 20, Lease: 7, TTL: 2, Revision: 1}
	put := func(call int64, key string) *Op {
		o := &Op{Kind: "put", Outcome: Done, Call: call, Return: call + 10,
			Then: []Action{{Kind: "put", Key: leasePrefix(7) + key, Value: key, Lease: 7}}}
		s.now = call + 1
		s.execute(o)
		return o
	}
	h := &History{Ops: []*Op{grant, put(30, "a"), put(50, "b")}}
	s.now = vanish
	s.vanish(7)
	h.Events = s.events
	return h, s
}

func TestLeasesThatExpireAreAccepted(t *testing.T) {
	h, _ := leaseHistory(10 + 2*second)
	if v := Check(h, enough); !v.Passed() {
		t.Error(v.Violations)
	}
	h, _ = leaseHistory(second)
	h.Ops = append(h.Ops, &Op{Kind: "revoke", Outcome: Unknown, Call: second - 10, Return: second + 10, Lease: 7})
	if v := Check(h, enough); !v.Passed() {
		t.Error(v.Violations)
	}
}

func TestKeyThatVanishesBeforeItsTimeIsFound(t *testing.T) {
	h, _ := leaseHistory(second)
	expect(t, Check(h, enough).Violations, "too early")
	h, _ = leaseHistory(3 * second)
	h.Ops = append(h.Ops, &Op{Kind: "renew", Outcome: Done, Call: 2 * second, Return: 2*second + 1, Lease: 7})
	expect(t, Check(h, enough).Violations, "too early")
}

func TestKeysThatVanishSeparatelyAreFound(t *testing.T) {
	h, _ := leaseHistory(3 * second)
	h.Events[len(h.Events)-1].KV.Mod++
	expect(t, Check(h, enough).Violations, "vanished at")
}

func TestKeyThatOutlivesItsLeaseIsFound(t *testing.T) {
	h, _ := leaseHistory(3 * second)
	h.Events = h.Events[:2]
	expect(t, Check(h, enough).Violations, "outlived")
	h.Remaining = Remaining{7}
	if v := Check(h, enough); !v.Passed() {
		t.Error(v.Violations)
	}
	h.Ops = append(h.Ops, &Op{Kind: "revoke", Outcome: Done, Call: second, Return: second + 10, Lease: 7, Revision: 3})
	expect(t, Check(h, enough).Violations, "exists after")
}

// lockHistory has two clients that want a lock; the second gets it at a time.
func lockHistory(first, second int64) *History {
	s := newStore()
	s.now = 10
	h := &History{Remaining: Remaining{1, 2}}
	for lease := int64(1); lease <= 2; lease++ {
		h.Ops = append(h.Ops, &Op{Kind: "grant", Outcome: Done, Call: lease, Return: lease + 1, Lease: lease, TTL: 10, Revision: 1})
		s.execute(&Op{Then: []Action{{Kind: "put", Key: fmt.Sprint("k/0/", lease), Lease: lease}}})
		lock := &Op{Kind: "lock", Outcome: Done, Call: 10, Return: first, Lease: lease, Lock: "k/0", Held: fmt.Sprint("k/0/", lease), Revision: 2}
		if lease == 2 {
			lock.Return, lock.Revision = second, 4
		}
		h.Ops = append(h.Ops, lock)
	}
	s.now = 200
	s.execute(&Op{Then: []Action{{Kind: "delete", Key: "k/0/1"}}})
	h.Ops = append(h.Ops, &Op{Kind: "unlock", Outcome: Done, Call: 200, Return: 210, Held: "k/0/1", Revision: 4})
	h.Events = s.events
	return h
}

func TestLockOfTwoClientsIsFound(t *testing.T) {
	if v := Check(lockHistory(100, 205), enough); !v.Passed() {
		t.Error(v.Violations)
	}
	expect(t, Check(lockHistory(100, 150), enough).Violations, "two clients have a lock")
	h := lockHistory(100, 205)
	h.Ops[3].Revision = 3
	expect(t, Check(h, enough).Violations, "a lock belongs to")
}

func TestFaultsOfInformersAreFound(t *testing.T) {
	good := func() *Informer {
		return &Informer{Objects: map[string][]int64{"a": {2, 5, 9}}, Cache: map[string]int64{"a": 9}, Server: map[string]int64{"a": 9}}
	}
	if found := CheckInformer(nil, good()); found != nil {
		t.Error(found)
	}
	back, late, extra := good(), good(), good()
	back.Objects["a"] = []int64{2, 9, 5}
	late.Cache["a"] = 5
	extra.Cache["b"] = 7
	expect(t, CheckInformer(nil, back), "from version 9 to 5")
	expect(t, CheckInformer(nil, late), "has version 9, not 5")
	expect(t, CheckInformer(nil, extra), "does not exist")
}
