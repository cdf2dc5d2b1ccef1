package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"vigil/tests/watch"
)

// Event is one change of one key. A delete has only key and revision. Seen is when a client received it.
type Event struct {
	Delete bool  `json:"delete,omitempty"`
	KV     KV    `json:"kv"`
	Seen   int64 `json:"seen,omitempty"`
}

func (e *Event) String() string {
	if e.Delete {
		return fmt.Sprintf("delete %s@%d", e.KV.Key, e.KV.Mod)
	}
	return "put " + e.KV.String()
}

// Timeline is what the server did: the events of every revision from 2 on, as one watch of everything has received them.
type Timeline struct {
	revisions [][]Event // those of revision r are at r-2
	versions  map[string][]Event
	keys      []string
	truth     *watch.Truth
	// Bounds of the time at which a revision was committed: after the last call that was answered at an older one, and
	// before the first answer at it or a newer one.
	after, before []int64
}

// NewTimeline replays events. It returns an error if revisions, versions or creations contradict each other.
func NewTimeline(events []Event, ops []*Op) (*Timeline, error) {
	t := &Timeline{versions: map[string][]Event{}}
	converted := make([]watch.Event, len(events))
	for i := range events {
		converted[i] = events[i].converted()
	}
	var err error
	if t.truth, err = watch.NewTruth(converted); err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.KV.Mod > t.last() {
			t.revisions = append(t.revisions, nil)
		}
		at := &t.revisions[len(t.revisions)-1]
		*at = append(*at, e)
		if t.versions[e.KV.Key] == nil {
			t.keys = append(t.keys, e.KV.Key)
		}
		t.versions[e.KV.Key] = append(t.versions[e.KV.Key], e)
	}
	slices.Sort(t.keys)
	t.bound(ops)
	return t, nil
}

func (e *Event) converted() watch.Event {
	kv := watch.KV{Key: e.KV.Key, Value: e.KV.Value, Create: e.KV.Create, Mod: e.KV.Mod, Version: e.KV.Version}
	return watch.Event{Delete: e.Delete, KV: kv}
}

func (t *Timeline) last() int64 { return int64(len(t.revisions)) + 1 }

func (t *Timeline) at(revision int64) []Event {
	if revision < 2 || revision > t.last() {
		return nil
	}
	return t.revisions[revision-2]
}

// get returns a key as it was at a revision; nil if it did not exist.
func (t *Timeline) get(key string, revision int64) *KV {
	versions := t.versions[key]
	n := sort.Search(len(versions), func(i int) bool { return versions[i].KV.Mod > revision })
	if n == 0 || versions[n-1].Delete {
		return nil
	}
	return &versions[n-1].KV
}

// list returns the keys with a prefix as they were at a revision.
func (t *Timeline) list(prefix string, revision int64) (kvs []KV) {
	at, _ := slices.BinarySearch(t.keys, prefix)
	for ; at < len(t.keys) && strings.HasPrefix(t.keys[at], prefix); at++ {
		if kv := t.get(t.keys[at], revision); kv != nil {
			kvs = append(kvs, *kv)
		}
	}
	return kvs
}

// bound computes when each revision was committed.
func (t *Timeline) bound(ops []*Op) {
	t.after, t.before = make([]int64, len(t.revisions)), make([]int64, len(t.revisions))
	for i := range t.before {
		t.before[i] = math.MaxInt64
		for _, e := range t.revisions[i] {
			if e.Seen > 0 {
				t.before[i] = min(t.before[i], e.Seen)
			}
		}
	}
	for _, o := range ops {
		if o.Outcome != Done || o.Revision == 0 {
			continue
		}
		if i := o.Revision - 2; i >= 0 && i < int64(len(t.before)) {
			t.before[i] = min(t.before[i], o.Return)
		}
		if i := o.Revision - 1; i >= 0 && i < int64(len(t.after)) && !o.Serializable {
			t.after[i] = max(t.after[i], o.Call)
		}
	}
	for i := len(t.before) - 2; i >= 0; i-- {
		t.before[i] = min(t.before[i], t.before[i+1])
	}
	for i := 1; i < len(t.after); i++ {
		t.after[i] = max(t.after[i], t.after[i-1])
	}
}

// committedBefore is a time at which the revision had been committed.
func (t *Timeline) committedBefore(revision int64) int64 { return t.before[revision-2] }
