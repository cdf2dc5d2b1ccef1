package main

import (
	"slices"
	"strings"
	"time"
)

// Partition has keys that no operation connects with others, and all operations on them.
type Partition struct {
	Keys []string
	Ops  []*Op
}

// groups is a union-find structure over keys.
type groups map[string]string

func (g groups) of(key string) string {
	for g[key] != key {
		g[key] = g[g[key]]
		key = g[key]
	}
	return key
}

func (g groups) add(key string) {
	if _, known := g[key]; !known {
		g[key] = key
	}
}

func (g groups) join(a, b string) { g[g.of(a)] = g.of(b) }

// searchable says whether the search for an order includes the operation: a read that may be old is checked by its
// revision instead.
func (o *Op) searchable() bool {
	if !o.isKV() || o.Outcome == Refused || o.Serializable || o.Outcome == Unknown && o.readsOnly() {
		return false
	}
	return !slices.ContainsFunc(o.Then, func(a Action) bool { return a.Revision > 0 })
}

func (o *Op) readsOnly() bool {
	return !slices.ContainsFunc(o.actions(), func(a Action) bool { return a.Kind != "get" })
}

// touched returns the keys of an operation, and its prefixes.
func (o *Op) touched() (keys, prefixes []string) {
	for _, c := range o.If {
		keys = append(keys, c.Key)
	}
	for _, a := range o.actions() {
		if a.Prefix {
			prefixes = append(prefixes, a.Key)
		} else {
			keys = append(keys, a.Key)
		}
	}
	for _, r := range o.Results {
		for _, kv := range r.KVs {
			keys = append(keys, kv.Key)
		}
	}
	return keys, prefixes
}

// Partitions divides operations. Keys with leases are left out, because they vanish by themselves.
func Partitions(ops []*Op) []*Partition {
	g := groups{}
	leased := map[string]bool{}
	for _, o := range ops {
		if !o.searchable() {
			continue
		}
		keys, _ := o.touched()
		for _, key := range keys {
			g.add(key)
			g.join(key, keys[0])
		}
		for _, a := range o.actions() {
			if a.Lease != 0 {
				leased[a.Key] = true
			}
		}
	}
	sorted := make([]string, 0, len(g))
	for key := range g {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	anchors := joinPrefixes(g, sorted, ops)
	parts := map[string]*Partition{}
	for _, key := range sorted {
		root := g.of(key)
		if parts[root] == nil {
			parts[root] = &Partition{}
		}
		parts[root].Keys = append(parts[root].Keys, key)
	}
	for i, o := range ops {
		if anchors[i] != "" {
			p := parts[g.of(anchors[i])]
			p.Ops = append(p.Ops, o)
		}
	}
	list := make([]*Partition, 0, len(parts))
	for _, key := range sorted {
		p := parts[key]
		if p != nil && len(p.Ops) > 0 && !slices.ContainsFunc(p.Keys, func(k string) bool { return leased[k] }) {
			list = append(list, p)
		}
	}
	return list
}

// joinPrefixes joins the keys that an operation on a prefix touches, and returns one key of every operation.
func joinPrefixes(g groups, sorted []string, ops []*Op) []string {
	anchors := make([]string, len(ops))
	for i, o := range ops {
		if !o.searchable() {
			continue
		}
		keys, prefixes := o.touched()
		for _, prefix := range prefixes {
			at, _ := slices.BinarySearch(sorted, prefix)
			for ; at < len(sorted) && strings.HasPrefix(sorted[at], prefix); at++ {
				keys = append(keys, sorted[at])
			}
		}
		for _, key := range keys {
			g.join(key, keys[0])
		}
		if len(keys) > 0 {
			anchors[i] = keys[0]
		}
	}
	return anchors
}

// Linearizability is the result for all partitions of a history.
type Linearizability struct {
	Partitions, Operations, Undecided int
	Largest                           int
	Violations                        []string
}

// CheckLinearizability searches every partition, each within the limit.
func CheckLinearizability(ops []*Op, limit time.Duration) (all Linearizability) {
	for _, p := range Partitions(ops) {
		all.Partitions++
		all.Operations += len(p.Ops)
		all.Largest = max(all.Largest, len(p.Ops))
		decision, why := Search(p.Keys, p.Ops, limit)
		switch decision {
		case Violated:
			for _, key := range p.Keys {
				why += unanswered(ops, key)
			}
			all.Violations = append(all.Violations, "not linearizable: "+why)
		case Undecided:
			all.Undecided++
		}
	}
	return all
}
