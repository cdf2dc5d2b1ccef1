package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// Front is a server without data of its own in front of a cluster: Vigil, or what VIGIL_FRONT names, to
// see which expectations hold there: "grpc-proxy" is etcd's, "relay" leads to a member itself.
type Front struct {
	*Server
	relay   *Relay // instead of a process
	t       testing.TB
	cluster *Cluster
	running bool
}

// FrontOptions say how a front is started. The zero value has useful defaults.
type FrontOptions struct {
	Args      []string // more flags
	Endpoints string   // of the cluster; all members behind their relays by default
	Dir       string   // of the mirror; a new one by default
}

// IsVigil says whether the fronts are Vigil.
func IsVigil() bool { return os.Getenv("VIGIL_FRONT") == "" }

func isProxy() bool { return os.Getenv("VIGIL_FRONT") == "grpc-proxy" }

// StartFront starts a front and stops it when the test ends.
func StartFront(c *Cluster, options FrontOptions) *Front {
	c.Helper()
	f := NewFront(c, options)
	f.Start()
	return f
}

// NewFront chooses an address and a directory, and starts nothing.
func NewFront(c *Cluster, options FrontOptions) *Front {
	c.Helper()
	if options.Dir == "" {
		options.Dir = filepath.Join(c.TempDir(), "mirror")
	}
	if options.Endpoints == "" {
		options.Endpoints = c.Endpoints()
	}
	s := newServer(Options{Dir: options.Dir, Port: FreePort()})
	f := &Front{Server: s, t: c.TB, cluster: c}
	switch {
	case IsVigil():
		f.Options.Args = f.vigilFlags(options)
	case isProxy():
		f.Options.command = f.proxyFlags(options)
		f.Options.readyLine = "started gRPC proxy"
	default:
		f.relayTo(c.Members[len(c.Members)-1])
	}
	c.Cleanup(f.end)
	return f
}

func (f *Front) relayTo(m *Member) {
	var err error
	if f.relay, err = NewRelay(m.Addr); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(f.relay.Close)
	f.Addr, f.URL = f.relay.Addr, f.cluster.scheme()+f.relay.Addr
	f.relay.Cut()
}

func (f *Front) vigilFlags(options FrontOptions) []string {
	flags := []string{"--upstream-endpoints", options.Endpoints, "--watch-progress-notify-interval", "200ms"}
	if a := f.cluster.Options.TLS; a != nil {
		a.Issue("vigil")
		flags = append(flags, "--upstream-cacert", a.Path("ca.pem"),
			"--upstream-cert", a.Path("vigil.pem"), "--upstream-key", a.Path("vigil.key"))
	}
	return append(flags, options.Args...)
}

func (f *Front) proxyFlags(options FrontOptions) []string {
	flags := []string{"grpc-proxy", "start", "--endpoints", options.Endpoints, "--listen-addr", f.Addr}
	if a := f.cluster.Options.TLS; a != nil {
		a.IssueAs("vigil", "") // it refuses a common name
		flags = append(flags, "--cacert", a.Path("ca.pem"), "--cert", a.Path("vigil.pem"), "--key", a.Path("vigil.key"))
	}
	return flags
}

// Start starts a front that does not run, with the mirror of its last run, and waits until it serves.
func (f *Front) Start() {
	f.t.Helper()
	f.Begin()
	if f.relay != nil {
		return
	}
	if err := f.Server.Await(); err != nil {
		f.t.Fatal(err)
	}
}

// Begin starts the front and does not wait.
func (f *Front) Begin() {
	f.t.Helper()
	f.running = true
	if f.relay != nil {
		f.relay.Restore()
		return
	}
	binary := Subject()
	if isProxy() {
		binary = Peer()
	}
	server, err := Begin(binary, f.Options)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Server = server
}

// Kill ends it at once.
func (f *Front) Kill() {
	f.running = false
	if f.relay != nil {
		f.relay.Cut()
		return
	}
	f.Server.Kill()
}

// Pause stops the front; Continue lets it run again.
func (f *Front) Pause() {
	f.t.Helper()
	if f.relay != nil {
		f.relay.Stall()
	} else if err := f.Server.Pause(); err != nil {
		f.t.Fatal(err)
	}
}

// Continue lets a paused front run again.
func (f *Front) Continue() {
	if f.relay != nil {
		f.relay.Restore()
	} else {
		f.Server.Continue()
	}
}

// Stop ends it as an operator does; it must end cleanly.
func (f *Front) Stop() {
	f.t.Helper()
	if f.relay != nil {
		f.Kill()
		return
	}
	f.running = false
	if err := f.Server.Stop(); err != nil {
		f.t.Error(err)
	}
}

// Erase deletes the mirror of a front that does not run, so that its next start is cold.
func (f *Front) Erase() {
	f.t.Helper()
	if err := os.RemoveAll(f.Dir); err != nil || f.running {
		f.t.Fatal("cannot erase a mirror: ", err)
	}
}

func (f *Front) end() {
	if f.running {
		f.Continue()
		f.Stop()
	}
	if f.t.Failed() && f.relay == nil {
		f.t.Logf("the front's log:\n%s", f.Log())
	}
}
