package differential

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

// VIGIL_DIFF_AUTH_SEEDS is the number of walks; VIGIL_DIFF_SEED is the first seed.
const (
	authSeedsDefault    = 2
	authRequestsDefault = 1500
)

// walk sends requests to both servers one after another, because each may affect the next answer.
type walk struct {
	subject   *side
	reference *side
	world     *world
	keep      func(r request, ours, theirs answer) // called for all answers; may be nil
	counts    map[string]int
	history   []request
	learn     func(r request, a answer) // called with the answers of the reference; may be nil
}

func newWalk(subject, reference *side, jwt bool) *walk {
	return &walk{subject: subject, reference: reference, world: newWorld(jwt), counts: map[string]int{}}
}

func (w *walk) step(r request) *difference {
	if name := w.world.leftOut(r); name != "" {
		w.counts["left out: "+name]++
		return nil
	}
	w.history = append(w.history, r)
	ours, theirs := callBoth(w.subject, w.reference, []request{r}, 1)
	return w.judge(r, normalise(r, ours[0]), normalise(r, theirs[0]))
}

// judge compares two answers, and learns from the second.
func (w *walk) judge(r request, a, b answer) *difference {
	if w.keep != nil {
		w.keep(r, a, b)
	}
	defer w.world.learn(r, b)
	if w.learn != nil {
		w.learn(r, b)
	}
	if same(a, b) {
		w.count(r, b)
		return nil
	}
	if name := w.world.listed(r, a, b); name != "" {
		w.counts["listed: "+name]++
		return nil
	}
	return &difference{r, a, b}
}

// count counts allowed and denied requests; a walk in which all are denied shows little.
func (w *walk) count(r request, a answer) {
	if !w.world.enabled || r.as <= 0 || w.world.isRoot(w.world.slots[r.as]) {
		return
	}
	switch r.body.(type) {
	case *pb.RangeRequest, *pb.PutRequest, *pb.DeleteRangeRequest, *pb.TxnRequest, *pb.WatchCreateRequest:
		if a.code == codes.OK {
			w.counts["allowed to users"]++
		} else if a.text == denied {
			w.counts["denied to users"]++
		}
	}
}

// memoryDir is a directory in memory if possible, because each write of a walk waits for the previous
// one.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "vigil-differential-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// tokenFlags selects tokens that the server keeps, or signed ones.
func tokenFlags(t *testing.T, jwt bool) []string {
	flags := []string{"--bcrypt-cost=4"}
	if jwt {
		key := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(key, []byte(strings.Repeat("secret", 8)), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--auth-token=jwt,sign-method=HS256,priv-key="+key+",ttl=1h")
	}
	return flags
}

func TestSameAnswersAsEtcdUnderAuth(t *testing.T) {
	first := number(t, "VIGIL_DIFF_SEED", 1)
	seeds := number(t, "VIGIL_DIFF_AUTH_SEEDS", authSeedsDefault)
	requests := int(number(t, "VIGIL_DIFF_AUTH_REQUESTS", authRequestsDefault))
	for _, jwt := range []bool{false, true} {
		for seed := first; seed < first+seeds; seed++ {
			t.Run(fmt.Sprintf("jwt-%v/seed-%d", jwt, seed), func(t *testing.T) {
				t.Parallel()
				walkBoth(t, jwt, seed, requests)
			})
		}
	}
}

func walkBoth(t *testing.T, jwt bool, seed int64, requests int) {
	subject, reference, stop := pair(t, memoryDir(t), tokenFlags(t, jwt)...)
	w := newWalk(subject, reference, jwt)
	start := time.Now()
	found := w.run(seed, requests)
	stop()
	t.Logf("seed %d, %d requests, %v: %v", seed, len(w.history), time.Since(start).Round(time.Millisecond), w.counts)
	if found != nil {
		t.Errorf("seed %d, after %d requests:\n%v", seed, len(w.history), found)
		reportWalk(t, jwt, w.history, found)
	} else if w.counts["allowed to users"] < requests/150 || w.counts["denied to users"] < requests/150 {
		t.Errorf("seed %d: too few requests were allowed or denied for a useful test: %v", seed, w.counts)
	}
}

func (w *walk) run(seed int64, requests int) *difference {
	g := authGenerator{
		generator: generator{
			Rand: rand.New(rand.NewSource(seed)), profile: authProfile(), revision: 1, compacted: -1},
		world: w.world,
	}
	w.learn = g.generator.learn
	for _, r := range g.begin() {
		if d := w.step(r); d != nil {
			return d
		}
	}
	for len(w.history) < requests {
		r := g.next()
		if d := w.step(r); d != nil {
			return d
		}
	}
	return nil
}

func reportWalk(t *testing.T, jwt bool, history []request, d *difference) {
	list, found := shrink(history, d.request, 20*time.Second, func(list []request) *difference {
		subject, reference, stop := pair(t, memoryDir(t), tokenFlags(t, jwt)...)
		defer stop()
		w := newWalk(subject, reference, jwt)
		for _, r := range list {
			if d := w.step(r); d != nil {
				return d
			}
		}
		return nil
	})
	if found == nil {
		t.Logf("repeating the requests does not show the difference again")
		return
	}
	var text strings.Builder
	for _, r := range list {
		text.WriteString("  " + r.String() + "\n")
	}
	t.Logf("shrunk to %d requests:\n%s%v", len(list), text.String(), found)
}
