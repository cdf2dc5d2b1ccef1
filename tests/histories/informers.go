package main

import "slices"

// Informer is what an informer of client-go has received: the resourceVersions of each object in order, and what it and
// the server had at the end.
type Informer struct {
	Client  string             `json:"client"`
	Objects map[string][]int64 `json:"objects"`
	Cache   map[string]int64   `json:"cache"`
	Server  map[string]int64   `json:"server"`
	Deleted []string           `json:"deleted,omitempty"` // deletes of objects that the informer did not have
}

// CheckInformer checks that the versions of each object increase, that each existed, and that the cache is complete.
func CheckInformer(t *Timeline, i *Informer) []string {
	var found faults
	for key, versions := range i.Objects {
		for n, version := range versions {
			if n > 0 && version <= versions[n-1] {
				found.add("informer %s: %s went from version %d to %d", i.Client, key, versions[n-1], version)
			}
			exists := func(e Event) bool { return e.KV.Mod == version }
			if t != nil && !slices.ContainsFunc(t.versions[key], exists) {
				found.add("informer %s: %s never had version %d", i.Client, key, version)
			}
		}
	}
	for _, key := range i.Deleted {
		found.add("informer %s: %s was deleted, but it did not exist", i.Client, key)
	}
	for key, version := range i.Server {
		if i.Cache[key] != version {
			found.add("informer %s: %s has version %d, not %d", i.Client, key, version, i.Cache[key])
		}
	}
	for key, version := range i.Cache {
		if i.Server[key] == 0 {
			found.add("informer %s: %s@%d does not exist", i.Client, key, version)
		}
	}
	return found
}
