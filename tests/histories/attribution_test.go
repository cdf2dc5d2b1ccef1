package main

import (
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"
)

// deletesOf makes a history in which the key h/0/0 is put and deleted twice, with these operations at any time.
func deletesOf(ops ...*Op) *History {
	s := newStore()
	h := &History{Ops: ops}
	for i, value := range []string{"a", "b"} {
		put := &Op{Client: "c", Kind: "put", Outcome: Done, Call: int64(100*i + 10), Return: int64(100*i + 30),
			Then: []Action{{Kind: "put", Key: "h/0/0", Value: value}}}
		s.now = put.Call + 5
		s.execute(put)
		h.Ops = append(h.Ops, put)
		s.now = put.Call + 50
		s.execute(&Op{Then: []Action{{Kind: "delete", Key: "h/0/0"}}})
	}
	h.Events = s.events
	return h
}

func unansweredDelete(call int64) *Op {
	return &Op{Client: "d", Kind: "delete", Outcome: Unknown, Error: "lost", Call: call, Return: 1000,
		Then: []Action{{Kind: "delete", Key: "h/0/0"}}}
}

// The transaction deletes only the value a, so the other delete has to be that of b, although it is older.
func TestWritersOfDeletesAreChosenTogether(t *testing.T) {
	onlyA := &Op{Client: "t", Kind: "txn", Outcome: Unknown, Error: "lost", Call: 2, Return: 1000,
		If:   []Compare{{Key: "h/0/0", Field: "value", Relation: "=", Text: "a"}},
		Then: []Action{{Kind: "delete", Key: "h/0/0"}}}
	h := deletesOf(unansweredDelete(1), onlyA)
	if v := Check(h, enough); !v.Passed() {
		t.Errorf("%q", v.Violations)
	}
	if onlyA.Hint != 3 || h.Ops[0].Hint != 5 {
		t.Errorf("revisions %d and %d", onlyA.Hint, h.Ops[0].Hint)
	}
}

func TestCorrectHistoriesWithManyUnansweredDeletesAreAccepted(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		ops := randomOps(random, 2+random.Intn(7), 200)
		for _, o := range ops {
			if o.mayDelete() && random.Intn(3) == 0 {
				o.Outcome = Unknown
			}
		}
		timeline, err := NewTimeline(played(random, newStore(), ops).Events, ops)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := CheckRevisions(timeline, ops); found != nil {
			t.Fatalf("seed %d: %q", seed, found)
		}
	}
}

// A delete of everything cannot be the one that left a key.
func TestWideDeleteExplainsOnlyWhatTookEveryKey(t *testing.T) {
	s := newStore()
	h := &History{}
	for i, key := range []string{"h/0/0", "h/0/1"} {
		put := &Op{Kind: "put", Outcome: Done, Call: int64(10 * i), Return: int64(10*i + 9), Then: []Action{{Kind: "put", Key: key, Value: key}}}
		s.now = put.Call + 1
		s.execute(put)
		h.Ops = append(h.Ops, put)
	}
	wide := &Op{Client: "w", Kind: "delete", Outcome: Unknown, Call: 30, Return: 40, Then: []Action{{Kind: "delete", Key: "h/0/", Prefix: true}}}
	h.Ops = append(h.Ops, wide)
	s.now = 35
	s.execute(&Op{Then: []Action{{Kind: "delete", Key: "h/0/0"}}})
	h.Events = s.events
	expect(t, Check(h, enough).Violations, "no client wrote revision 4")
	s.execute(&Op{Then: []Action{{Kind: "delete", Key: "h/0/1"}}})
	h.Events = s.events
	h.Ops = append(h.Ops, unansweredDelete(20))
	if v := Check(h, enough); !v.Passed() || wide.Hint != 5 {
		t.Errorf("%d: %q", wide.Hint, v.Violations)
	}
}

func TestDeleteWithoutAWriterNamesWhatIsUnanswered(t *testing.T) {
	refused := unansweredDelete(1)
	refused.Outcome, refused.Error = Refused, "not sent"
	found := Check(deletesOf(unansweredDelete(2), refused), enough).Violations
	expect(t, found, "no client wrote revision 5")
	expect(t, found, "unanswered or refused writes of h/0/0: 2")
	expect(t, found, "refused [1, 1000]; then delete h/0/0 : not sent")
	late := unansweredDelete(120)
	expect(t, Check(deletesOf(late, unansweredDelete(130)), enough).Violations, "no client wrote revision 3")
}

// An answered delete of an object has no revision, but it must have one in the timeline.
func TestAnsweredDeleteThatWasNotExecutedIsFound(t *testing.T) {
	object := func(call int64) *Op {
		return &Op{Client: "k", Kind: "kube delete", Outcome: Done, Succeeded: true, Call: call, Return: call + 40,
			Then: []Action{{Kind: "delete", Key: "h/0/0"}}, Results: []Result{{Deleted: 1}}}
	}
	if v := Check(deletesOf(object(40), object(140)), enough); !v.Passed() {
		t.Errorf("%q", v.Violations)
	}
	found := Check(deletesOf(object(40), object(41), object(140)), enough).Violations
	expect(t, found, "lost: no revision is that of k kube delete")
	// One without an answer takes what the answered ones leave.
	if v := Check(deletesOf(unansweredDelete(1), object(140)), enough); !v.Passed() {
		t.Errorf("%q", v.Violations)
	}
}

// best is the largest number of pairs, by trying everything.
func best(fits [][]bool, left int, used uint) int {
	if left == len(fits) {
		return 0
	}
	most := best(fits, left+1, used)
	for right, possible := range fits[left] {
		if possible && used&(1<<right) == 0 {
			most = max(most, 1+best(fits, left+1, used|1<<right))
		}
	}
	return most
}

func TestMatchingIsAsLargeAsPossible(t *testing.T) {
	for seed := range int64(500) {
		random := rand.New(rand.NewSource(seed))
		fits := make([][]bool, 1+random.Intn(6))
		rights := 1 + random.Intn(6)
		for l := range fits {
			for range rights {
				fits[l] = append(fits[l], random.Intn(3) == 0)
			}
		}
		m := newMatching(len(fits), rights, func(l, r int) bool { return fits[l][r] })
		first := m.matchRight(0)
		count := 0
		for l := range fits {
			if m.matchLeft(l) {
				count++
			}
		}
		if want := best(fits, 0, 0); count != want || first != (m.ofRight[0] >= 0) {
			t.Fatalf("seed %d: %d pairs, not %d", seed, count, want)
		}
		for l, r := range m.ofLeft {
			if r >= 0 && (!fits[l][r] || m.ofRight[r] != l) {
				t.Fatalf("seed %d: %d and %d do not fit", seed, l, r)
			}
		}
	}
}

func TestSavedHistoryIsTheSame(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	random := rand.New(rand.NewSource(1))
	h := played(random, newStore(), randomOps(random, 4, 100))
	h.Server = "etcd"
	path, err := save(h, 7, 3)
	if err != nil || !strings.HasPrefix(path, os.TempDir()) {
		t.Fatal(path, err)
	}
	if again, err := load(path); err != nil || !reflect.DeepEqual(h, again) {
		t.Errorf("%+v, %v", again, err)
	}
}
