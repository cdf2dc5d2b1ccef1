package power

import (
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"sync"
)

// The tables of rows, as in src/store/record/row.h.
const (
	leaseTable = 1
	userTable  = 3
	roleTable  = 4
	authTable  = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// change is what a request does to one key.
type change struct {
	key    string
	value  string
	lease  int64
	delete bool
}

// request is one that changed keys.
type request struct {
	answered uint64 // 0: not acknowledged
	revision int64
	changes  []change
}

// history has all requests and answers, in the form that history.h describes.
type history struct {
	lock     sync.Mutex
	text     strings.Builder
	requests []request
	acked    int // requests of every kind
	failed   int
}

func (h *history) line(answered uint64, format string, arguments ...any) {
	fmt.Fprintf(&h.text, format+"\n", arguments...)
	if answered != 0 {
		h.acked++
	} else {
		h.failed++
	}
}

func (h *history) change(sent, answered uint64, revision int64, changes []change) {
	h.lock.Lock()
	defer h.lock.Unlock()
	var words strings.Builder
	for _, c := range changes {
		if c.delete {
			fmt.Fprintf(&words, " delete %s", c.key)
		} else {
			fmt.Fprintf(&words, " put %s %d %d %d", c.key, len(c.value), crc32.Checksum([]byte(c.value), castagnoli), c.lease)
		}
	}
	h.line(answered, "change %d %d %d %d%s", sent, answered, revision, len(changes), words.String())
	h.requests = append(h.requests, request{answered, revision, changes})
}

func (h *history) compact(sent, answered uint64, revision int64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.line(answered, "compact %d %d %d", sent, answered, revision)
}

func (h *history) row(sent, answered uint64, table int, key string, exists bool, revision int64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	number := 0
	if exists {
		number = 1
	}
	h.line(answered, "row %d %d %d %s %d %d", sent, answered, table, key, number, revision)
}

func (h *history) hash(sent, answered uint64, revision, compacted int64, hash uint32) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.line(answered, "hash %d %d %d %d %d", sent, answered, revision, compacted, hash)
}

func (h *history) save(path string) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	return os.WriteFile(path, []byte(h.text.String()), 0o600)
}

// found is a key as a client reads it.
type found struct {
	value    string
	lease    int64
	revision int64
}

// at is the state at a revision.
func (h *history) at(revision int64) map[string]found {
	h.lock.Lock()
	defer h.lock.Unlock()
	byRevision := map[int64]request{}
	for _, r := range h.requests {
		byRevision[r.revision] = r
	}
	state := map[string]found{}
	for number := int64(2); number <= revision; number++ {
		for _, c := range byRevision[number].changes {
			if c.delete {
				delete(state, c.key)
			} else {
				state[c.key] = found{c.value, c.lease, number}
			}
		}
	}
	return state
}

// due is the highest revision that was acknowledged before a position.
func (h *history) due(position uint64) (revision int64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, r := range h.requests {
		if r.answered != 0 && r.answered <= position {
			revision = max(revision, r.revision)
		}
	}
	return revision
}

// hasFailed says whether it is unknown of some request if it was executed. After a compaction the
// keys would not show that any more.
func (h *history) hasFailed() bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.failed > 0
}
