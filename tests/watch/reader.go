package watch

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// read is one answered read of a range at the server's newest revision.
type read struct {
	key, end     string
	serializable bool
	atLeast      int64 // the highest revision that any client knew when it began; 0 if it may be older
	revision     int64 // of the header
	kvs          []KV
}

// reader reads until its context ends, and remembers the answers.
type reader struct {
	*recorder
	random *rand.Rand
	conn   *grpc.ClientConn
	name   string
	pause  time.Duration // between reads, at most
	limit  time.Duration
	reads  []read
}

func (r *reader) run(ctx context.Context) {
	defer r.users.Done()
	kv := pb.NewKVClient(r.conn)
	for ctx.Err() == nil {
		next := r.next()
		call, cancel := context.WithTimeout(ctx, r.limit)
		answer, err := kv.Range(call, &pb.RangeRequest{
			Key: []byte(next.key), RangeEnd: []byte(next.end), Serializable: next.serializable})
		cancel()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		next.revision = answer.Header.Revision
		for _, kv := range answer.Kvs {
			next.kvs = append(next.kvs, kvOf(kv))
		}
		r.reads = append(r.reads, next)
		if !next.serializable {
			r.learn(next.revision)
		}
		if r.pause > 0 {
			time.Sleep(time.Duration(r.random.Int63n(int64(r.pause))))
		}
	}
}

// next is a read of one key, some keys or all. It must see what any client knows by now, whether that
// client has written or read it, except that a serializable read may be older.
func (r *reader) next() read {
	next := read{key: keyName(r.random.Intn(writtenKeys)), serializable: r.random.Intn(4) == 0}
	switch r.random.Intn(4) {
	case 0:
		next.key, next.end = "k/", "k0"
	case 1:
		next.end = "k0"
	}
	if !next.serializable {
		next.atLeast = r.known()
	}
	return next
}

// checkReads checks that each read returned exactly the state of its revision, and was not older than
// what was known before it began.
func checkReads(truth *Truth, reads []read) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	byRevision := slices.Clone(reads)
	slices.SortStableFunc(byRevision, func(a, b read) int { return int(a.revision - b.revision) })
	state, at := map[string]KV{}, int64(1)
	for n := range byRevision {
		one := &byRevision[n]
		if one.revision < one.atLeast {
			fault("a linearizable read of %s was answered at revision %d, but %d was known before", one.key, one.revision, one.atLeast)
		}
		if one.revision > truth.Last() {
			fault("a read of %s was answered at revision %d, but the last is %d", one.key, one.revision, truth.Last())
			continue
		}
		for ; at < one.revision; at++ {
			for _, event := range truth.at(at + 1) {
				step(state, event)
			}
		}
		if wanted := one.wanted(state); !slices.Equal(one.kvs, wanted) {
			fault("a read of [%s,%q) at revision %d returned %s, but the state was %s",
				one.key, one.end, one.revision, differing(one.kvs, wanted), differing(wanted, one.kvs))
		}
		if len(faults) >= faultsMax {
			break
		}
	}
	return faults
}

func (r *read) wanted(state map[string]KV) (wanted []KV) {
	request := Request{Key: r.key, End: r.end}
	for key, kv := range state {
		if request.covers(key) {
			wanted = append(wanted, kv)
		}
	}
	slices.SortFunc(wanted, func(a, b KV) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return wanted
}

// differing names the first key-value that the other list does not have.
func differing(these, others []KV) string {
	for n := range these {
		if !slices.Contains(others, these[n]) {
			return these[n].String()
		}
	}
	return fmt.Sprintf("%d keys", len(these))
}
