package power

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"vigil/tests/harness"
)

const (
	faultWorkers  = 4
	faultRequests = 25 // of each worker
	faultImages   = 4  // of each run
)

// class is one of system calls, as record.c names them.
type class struct {
	name  string
	calls int
	hows  []string
}

// runWithFault starts a server in which a call fails, and sends requests until they end or fail.
func runWithFault(t *testing.T, seed int64, fault string) (r *recording, served bool, server *harness.Server) {
	t.Helper()
	r = newRecording(t)
	r.fault = fault
	server, err := harness.Begin(harness.Subject(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	if server.Await() != nil {
		return r, false, server
	}
	conn, err := dial(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all []*worker
	for id := range faultWorkers {
		all = append(all, newWorker(id, seed))
	}
	l := &load{recording: r, conn: conn, seed: seed}
	if err := l.run(all, faultRequests); err != nil && fault == "" {
		t.Fatal(err)
	}
	return r, true, server
}

// callClasses counts the calls of a run without faults.
func callClasses(t *testing.T, seed int64) (all []class) {
	t.Helper()
	r, _, server := runWithFault(t, seed, "")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.countPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		c := class{hows: []string{"EIO", "ENOSPC", "EINTR"}}
		if _, err := fmt.Sscan(line, &c.name, &c.calls); err != nil {
			t.Fatal(err)
		}
		if c.name == "write" {
			c.hows = append(c.hows, "short")
		}
		all = append(all, c)
	}
	return all
}

// faults lists every call of every class with every failure: once, and from then on.
func faults(all []class) (list []string) {
	for _, c := range all {
		for n := 1; n <= c.calls; n++ {
			for _, how := range c.hows {
				list = append(list, fmt.Sprintf("%s:%d:%s", c.name, n, how))
				if how == "EIO" || how == "ENOSPC" {
					list = append(list, fmt.Sprintf("%s:%d:%s:always", c.name, n, how))
				}
			}
		}
	}
	return list
}

// explained says whether a server that ended by itself has said why. Its last lines may still be on
// their way to us.
func explained(server *harness.Server) bool {
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		log := server.Log()
		if strings.Contains(log, `"level":"fatal"`) || strings.Contains(log, `"level":"error"`) {
			return true
		}
	}
	return false
}

// outcomes count what servers did about a fault.
type outcomes struct {
	runs, refused, stopped, answered, unnoticed, images int
}

func (o *outcomes) tryFault(t *testing.T, seed int64, fault string) {
	r, served, server := runWithFault(t, seed, fault)
	o.runs++
	ended := false
	select {
	case <-server.Exited():
		ended = true
	case <-time.After(10 * time.Millisecond): // it may be about to stop: Stop notices that, too
	}
	err := server.Stop()
	switch {
	case !served:
		o.refused++
	case ended || err != nil:
		o.stopped++
	case r.history.failed > 0:
		o.answered++
	default:
		o.unnoticed++
	}
	if (!served || ended || err != nil) && (server.Signalled() || !explained(server)) {
		t.Errorf("%s: the server ended without saying why: %v\n%s", fault, err, server.Log())
	}
	// After a loss of power, and then as the server has left it.
	result, complaint, err := r.images(faultImages, seed)
	if err != nil {
		t.Fatal(err)
	}
	o.images += int(result.Images)
	if result.Wrong > 0 {
		t.Errorf("%s, seed %d, then a loss of power, recording in %s: %s\n%s", fault, seed, keep(t, r), complaint, server.Log())
	}
	if _, err := os.Stat(r.dir); err != nil {
		return // not even the directory could be made
	}
	result, complaint, err = r.open()
	if err != nil {
		t.Fatal(err)
	}
	if result.Wrong > 0 {
		t.Errorf("%s, seed %d: the next start: %s\n%s", fault, seed, complaint, server.Log())
	}
}

// Each system call may fail: the server answers with an error, stops and says why, or continues, and
// the next start has everything that was acknowledged. A run with few images has some of the calls.
func TestFailingCalls(t *testing.T) {
	seed := number("VIGIL_POWER_SEED", time.Now().UnixNano()%1_000_000)
	all := callClasses(t, seed)
	list := faults(all)
	count := len(list)
	if images() < imagesGoal {
		count = min(count, max(16, images()/40))
	}
	var o outcomes
	for i := range count {
		o.tryFault(t, seed, list[(i*len(list)+int(seed))/count%len(list)])
	}
	t.Logf("%d of %d faults in %+v: %+v", count, len(list), all, o)
	report.seed("seed of the system calls that fail", seed)
	report.fact("ways in which a system call of one run can fail", len(list))
	report.fact("… tried, one in each run of a server", o.runs)
	report.fact("… the server refused to start and said why", o.refused)
	report.fact("… it stopped and said why", o.stopped)
	report.fact("… it answered a request with an error", o.answered)
	report.fact("… it continued, and nothing was missing afterwards", o.unnoticed)
	report.fact("… crash images opened after these", o.images)
	report.row("ways in which a system call can fail, tried one by one", float64(o.runs), float64(len(list)), o.runs == len(list))
}
