package watch

import (
	"slices"
	"strings"
	"testing"
)

func put(key, value string, create, mod, version int64) Event {
	return Event{KV: KV{key, value, create, mod, version}}
}

// The checker of reads detects every way in which an answer can be wrong.
func TestPlantedReadsAreSeen(t *testing.T) {
	first, second := put("a", "1", 2, 2, 1), put("a", "2", 2, 3, 2)
	other := put("b", "1", 4, 4, 1)
	truth, err := NewTruth([]Event{first, second, other, {Delete: true, KV: KV{Key: "a", Mod: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	right := []read{
		{key: "a", revision: 2, kvs: []KV{first.KV}},
		{key: "a", revision: 3, atLeast: 3, kvs: []KV{second.KV}},
		{key: "a", end: "c", revision: 4, atLeast: 2, kvs: []KV{second.KV, other.KV}},
		{key: "a", end: "c", revision: 5, kvs: []KV{other.KV}},
		{key: "a", revision: 1},
	}
	if faults := checkReads(truth, right); len(faults) > 0 {
		t.Fatalf("nothing is wrong, but: %v", faults)
	}
	for name, wrong := range map[string]read{
		"older than what was known": {key: "a", revision: 2, atLeast: 3, kvs: []KV{first.KV}},
		"the value before":          {key: "a", revision: 3, kvs: []KV{first.KV}},
		"a deleted key":             {key: "a", revision: 5, kvs: []KV{second.KV}},
		"a key is missing":          {key: "a", end: "c", revision: 4, kvs: []KV{second.KV}},
		"a value never written":     {key: "a", revision: 2, kvs: []KV{{"a", "x", 2, 2, 1}}},
		"keys in another order":     {key: "a", end: "c", revision: 4, kvs: []KV{other.KV, second.KV}},
		"a revision of the future":  {key: "a", revision: 6},
	} {
		faults := checkReads(truth, append(slices.Clone(right), wrong))
		if len(faults) != 1 {
			t.Errorf("%s: %d faults: %s", name, len(faults), strings.Join(faults, "; "))
		}
	}
}
