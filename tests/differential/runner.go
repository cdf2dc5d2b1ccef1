// Package differential sends the same random requests to the server under test and to a real etcd
// and compares every answer.
//
// Writes are sent one after another, because each determines the revisions of the following ones.
// Between two batches of writes the store does not change, and reads at past, present and future
// revisions run concurrently.
package differential

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	readers        = 8
	differencesMax = 5 // a run continues after a wrong read, up to this number
)

// difference is the first place where two servers disagree.
type difference struct {
	request   request
	subject   answer
	reference answer
}

// run is one seeded comparison of two servers that start empty.
type run struct {
	subject   *side
	reference *side
	generator generator
	history   []request // every write so far, for replay
	sent      int
	perturb   func(r request, a answer) answer // a planted fault; nil for none
	accepted  map[string]int
	found     []*difference
}

func newRun(subject, reference *side, shape profile, seed int64) *run {
	return &run{
		subject: subject, reference: reference, accepted: map[string]int{},
		generator: generator{Rand: rand.New(rand.NewSource(seed)), profile: shape, revision: 1, compacted: -1},
	}
}

// compare sends at least this many requests; the first wrong write ends it.
func (r *run) compare(requests int) []*difference {
	more := r.batch(r.generator.fill(), 1)
	for more && r.sent < requests {
		more = r.batch(r.generator.writes(), 1) && r.batch(r.generator.reads(), readers)
	}
	return r.found
}

func (r *run) batch(list []request, parallel int) bool {
	ours, theirs := callBoth(r.subject, r.reference, list, parallel)
	for i, req := range list {
		r.sent++
		if parallel == 1 {
			r.history = append(r.history, req)
		}
		a := ours[i]
		if r.perturb != nil {
			a = r.perturb(req, a)
		}
		r.generator.learn(req, theirs[i])
		if d := judge(req, a, theirs[i], r.accepted); d != nil {
			r.found = append(r.found, d)
			if parallel == 1 || len(r.found) == differencesMax {
				return false
			}
		}
	}
	return true
}

// judge compares one pair of answers.
func judge(req request, ours, theirs answer, counts map[string]int) *difference {
	ours, theirs = normalise(req, ours), normalise(req, theirs)
	if same(ours, theirs) {
		return nil
	}
	if name := accepted(req, ours, theirs); name != "" {
		counts[name]++
		return nil
	}
	return &difference{req, ours, theirs}
}

// learn follows the reference's revisions, which affect the next requests.
func (g *generator) learn(req request, a answer) {
	if a.message == nil {
		return
	}
	if h := a.message.(interface{ GetHeader() *pb.ResponseHeader }).GetHeader(); h != nil {
		g.revision = max(g.revision, h.Revision)
	}
	if c, ok := req.body.(*pb.CompactionRequest); ok {
		g.compacted = max(g.compacted, c.Revision)
	}
}

func callBoth(a, b *side, list []request, parallel int) (ours, theirs []answer) {
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		ours = callAll(a, list, parallel)
	}()
	go func() {
		defer both.Done()
		theirs = callAll(b, list, parallel)
	}()
	both.Wait()
	return ours, theirs
}

func callAll(s *side, list []request, parallel int) []answer {
	answers := make([]answer, len(list))
	if parallel == 1 {
		for i, req := range list {
			answers[i] = s.call(req)
		}
		return answers
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range parallel {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
				answers[i] = s.call(list[i])
			}
		}()
	}
	all.Wait()
	return answers
}

func (d *difference) String() string {
	return fmt.Sprintf("request %v\n  under test: %v\n  reference:  %v", d.request, d.subject, d.reference)
}
