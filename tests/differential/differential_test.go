package differential

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"

	"vigil/tests/harness"
)

// VIGIL_DIFF_REQUESTS and VIGIL_DIFF_SEED change the number and the choice of requests.
const requestsDefault = 300_000

func number(t *testing.T, name string, otherwise int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// pair starts both servers empty.
func pair(t testing.TB, dir string, flags ...string) (*side, *side, func()) {
	start := func(name, binary string) (*side, *harness.Server) {
		server, err := harness.Launch(binary, harness.Options{Dir: filepath.Join(dir, name), Fast: true, Args: flags})
		if err != nil {
			t.Fatal(err)
		}
		s, err := dial(name, server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		return s, server
	}
	subject, subjectServer := start("subject", harness.Subject())
	reference, referenceServer := start("reference", harness.Peer())
	return subject, reference, func() {
		subject.connection.Close()
		reference.connection.Close()
		if err := subjectServer.Stop(); err != nil {
			t.Error(err)
		}
		referenceServer.Kill()
	}
}

func TestSameAnswersAsEtcd(t *testing.T) {
	shapes := profiles()
	each := int(number(t, "VIGIL_DIFF_REQUESTS", requestsDefault)) / len(shapes)
	seed := number(t, "VIGIL_DIFF_SEED", time.Now().UnixNano())
	for i, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			compareShape(t, shape, seed+int64(i), each)
		})
	}
}

func compareShape(t *testing.T, shape profile, seed int64, requests int) {
	subject, reference, stop := pair(t, t.TempDir())
	r := newRun(subject, reference, shape, seed)
	begin := time.Now()
	found := r.compare(requests)
	stop()
	t.Logf("%s: seed %d, %d requests, revision %d, %v; accepted differences: %v",
		shape.name, seed, r.sent, r.generator.revision, time.Since(begin).Round(time.Millisecond), r.accepted)
	for _, d := range found {
		t.Errorf("seed %d, after %d requests, %d writes:\n%v", seed, r.sent, len(r.history), d)
	}
	if len(found) > 0 {
		report(t, r.history, found[len(found)-1])
	}
}

// report replays fewer and fewer writes to show the difference with as few as possible.
func report(t *testing.T, writes []request, d *difference) {
	list, found := shrink(writes, d.request, time.Minute, func(list []request) *difference {
		subject, reference, stop := pair(t, t.TempDir())
		defer stop()
		ours, theirs := callBoth(subject, reference, list, 1)
		for i, req := range list {
			if d := judge(req, ours[i], theirs[i], map[string]int{}); d != nil {
				return d
			}
		}
		return nil
	})
	if found == nil {
		t.Logf("replaying the writes in order does not show the difference again")
		return
	}
	var text strings.Builder
	for _, req := range list[max(0, len(list)-12):] {
		text.WriteString("  " + req.String() + "\n")
	}
	t.Logf("shrunk to %d requests (the last 12 shown):\n%s%v", len(list), text.String(), found)
}

// The comparison must find each planted fault.
func TestPlantedFaultsAreFound(t *testing.T) {
	faults := map[string]func(request, answer) answer{
		"missing key": onRange(func(r *pb.RangeResponse) bool {
			if len(r.Kvs) == 0 {
				return false
			}
			r.Kvs = r.Kvs[:len(r.Kvs)-1]
			return true
		}),
		"wrong count":    onRange(func(r *pb.RangeResponse) bool { r.Count++; return true }),
		"more forgotten": onRange(func(r *pb.RangeResponse) bool { was := r.More; r.More = false; return was }),
		"wrong version": onRange(func(r *pb.RangeResponse) bool {
			if len(r.Kvs) == 0 {
				return false
			}
			r.Kvs[0].Version++
			return true
		}),
		"sorted the wrong way": onRange(func(r *pb.RangeResponse) bool {
			n := len(r.Kvs)
			if n < 2 {
				return false
			}
			r.Kvs[0], r.Kvs[n-1] = r.Kvs[n-1], r.Kvs[0]
			return true
		}),
		"revision goes ahead": onTxn(func(r *pb.TxnResponse) bool { r.Header.Revision++; return true }),
		"other branch":        onTxn(func(r *pb.TxnResponse) bool { r.Succeeded = !r.Succeeded; return true }),
		"response lost in a nested transaction": onTxn(func(r *pb.TxnResponse) bool {
			for _, op := range r.Responses {
				if n := op.GetResponseTxn(); n != nil && len(n.Responses) > 0 {
					n.Responses = n.Responses[1:]
					return true
				}
			}
			return false
		}),
		"other error text": func(_ request, a answer) answer {
			if a.code == codes.InvalidArgument {
				a.text += "."
			}
			return a
		},
		"other error code": func(_ request, a answer) answer {
			if a.code == codes.OutOfRange {
				a.code = codes.InvalidArgument
			}
			return a
		},
		"lease of a key forgotten": onRange(func(r *pb.RangeResponse) bool {
			for _, kv := range r.Kvs {
				if kv.Lease != 0 {
					kv.Lease = 0
					return true
				}
			}
			return false
		}),
		"key of a lease forgotten": func(_ request, a answer) answer {
			if l, ok := a.message.(*pb.LeaseTimeToLiveResponse); ok && len(l.Keys) > 0 {
				l.Keys = l.Keys[1:]
			}
			return a
		},
		"other hash": func(_ request, a answer) answer {
			if h, ok := a.message.(*pb.HashKVResponse); ok {
				h.Hash ^= 1
			}
			return a
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VIGIL_BIN", harness.Peer())
			subject, reference, stop := pair(t, t.TempDir())
			defer stop()
			r := newRun(subject, reference, profiles()[0], 1)
			r.perturb = fault
			if r.compare(5000) == nil {
				t.Error("not found")
			}
		})
	}
}

func onRange(change func(*pb.RangeResponse) bool) func(request, answer) answer {
	done := false
	return func(_ request, a answer) answer {
		if r, ok := a.message.(*pb.RangeResponse); ok && !done {
			done = change(r)
		}
		return a
	}
}

func onTxn(change func(*pb.TxnResponse) bool) func(request, answer) answer {
	done := false
	return func(_ request, a answer) answer {
		if r, ok := a.message.(*pb.TxnResponse); ok && !done {
			done = change(r)
		}
		return a
	}
}
