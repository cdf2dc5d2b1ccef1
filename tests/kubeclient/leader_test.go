package kubeclient

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// goCandidate is a candidate of client-go; it releases the lease when it stops.
type goCandidate struct {
	leads chan bool
	seen  chan string // the holders of the lease that it has seen
	stop  context.CancelFunc
}

func newGoCandidate(t *testing.T, s *server, identity string) *goCandidate {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.scheme + "://" + s.kube})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &goCandidate{leads: make(chan bool, 16), seen: make(chan string, 16), stop: stop}
	t.Cleanup(stop)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "lock", Namespace: "default"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { c.leads <- true },
			OnStoppedLeading: func() { c.leads <- false },
			OnNewLeader:      func(identity string) { c.seen <- identity },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	return c
}

func (c *goCandidate) mustLead(t *testing.T, wanted bool) {
	t.Helper()
	select {
	case leads := <-c.leads:
		if leads != wanted {
			t.Fatalf("leads: %v", leads)
		}
	case <-time.After(patience):
		t.Fatal("nothing happens")
	}
}

// cCandidate runs examples/kube_elect.c.
type cCandidate struct {
	process *exec.Cmd
	output  *bufio.Reader
}

func newCCandidate(t *testing.T, s *server, identity string) *cCandidate {
	t.Helper()
	process := exec.Command(buildExample(t, "kube_elect"), "lock", identity)
	process.Env = append(os.Environ(), exampleEnvironment(s)...)
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	return &cCandidate{process, bufio.NewReader(output)}
}

// writes returns when the program has written the line; false: it has ended without it.
func (c *cCandidate) writes(wanted string) bool {
	for {
		line, err := c.output.ReadString('\n')
		if err != nil {
			return false
		}
		if strings.TrimSpace(line) == wanted {
			return true
		}
	}
}

func (c *cCandidate) read(t *testing.T, wanted string) {
	t.Helper()
	if !c.writes(wanted) {
		t.Fatalf("the program has ended without %q", wanted)
	}
}

func TestCandidatesInCAndInGoShareOneElection(t *testing.T) {
	s := newServer(t)
	inC := newCCandidate(t, s, "in-c")
	inC.read(t, "leading")
	inGo := newGoCandidate(t, s, "in-go")
	select {
	case <-inGo.leads:
		t.Fatal("there are two leaders")
	case holder := <-inGo.seen:
		if holder != "in-c" {
			t.Fatalf("the leader is %q", holder)
		}
	case <-time.After(patience):
		t.Fatal("the Go candidate has not seen the leader")
	}
	again := newCCandidate(t, s, "again")
	again.read(t, "the leader is in-c")
	inC.process.Process.Signal(syscall.SIGKILL)
	start := time.Now()
	leader := make(chan string, 2)
	go func() {
		if <-inGo.leads {
			leader <- "in-go"
		}
	}()
	go func() {
		if again.writes("leading") {
			leader <- "again"
		}
	}()
	select {
	case who := <-leader:
		if waited := time.Since(start); waited < 8*time.Second {
			t.Fatalf("%s leads %v after the last renewal could have been", who, waited)
		}
	case <-time.After(patience):
		t.Fatal("no candidate leads")
	}
}

func TestCandidatesHandTheLeaseOver(t *testing.T) {
	s := newServer(t)
	inGo := newGoCandidate(t, s, "in-go")
	inGo.mustLead(t, true)
	inC := newCCandidate(t, s, "in-c")
	inC.read(t, "the leader is in-go")
	inGo.stop()
	inGo.mustLead(t, false)
	inC.read(t, "leading")
	later := newGoCandidate(t, s, "later")
	inC.process.Process.Signal(syscall.SIGTERM)
	later.mustLead(t, true)
}
