package harness

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// With VIGIL_ENGINE=cluster every Vigil is started in front of a real etcd of its own, so that the
// tests of one server run on the cluster engine too. The etcd lives as long as the data directory is
// used: it is not stopped when Vigil is.
var (
	upstreamLock sync.Mutex
	upstreams    = map[string]*Server{} // by the directory of the server in front
)

// storeFlags configure the store, which is the cluster's: etcd gets them instead of Vigil.
var storeFlags = []string{"--quota-backend-bytes", "--max-txn-ops", "--auto-compaction-mode",
	"--auto-compaction-retention", "--auth-token", "--auth-token-ttl", "--bcrypt-cost"}

// upstreamUser is Vigil's own where a test has enabled authentication: the tests' root.
const upstreamUser = "root:rootpw"

// sharedFlags are for both.
var sharedFlags = []string{"--max-request-bytes"}

// InFront says whether servers are started in front of an etcd of their own.
func InFront() bool { return os.Getenv("VIGIL_ENGINE") == "cluster" }

// OnlyAlone skips a test of what is different in front of a cluster; docs/compatibility.md has the list.
func OnlyAlone(t testing.TB, why string) {
	t.Helper()
	if InFront() {
		t.Skip("in front of a cluster: " + why)
	}
}

func isUpstream(arg string) bool { return strings.HasPrefix(arg, "--upstream-endpoints") }

// putInFront starts the etcd behind a server, if it does not run, and changes the server's flags.
func putInFront(options *Options) error {
	if !InFront() || options.command != nil || slices.ContainsFunc(options.Args, isUpstream) {
		return nil
	}
	upstreamLock.Lock()
	defer upstreamLock.Unlock()
	own, store := splitFlags(options.Args)
	if upstreams[options.Dir] == nil {
		server, err := Launch(Peer(), Options{Dir: options.Dir + ".upstream", Fast: true, Args: store})
		if err != nil {
			return err
		}
		upstreams[options.Dir] = server
	}
	options.Args = append(own, "--upstream-endpoints", upstreams[options.Dir].URL, "--upstream-user", upstreamUser)
	options.follows = true
	return nil
}

// endUpstream ends the etcd behind a server that is not started again.
func endUpstream(dir string) {
	upstreamLock.Lock()
	defer upstreamLock.Unlock()
	if server := upstreams[dir]; server != nil {
		delete(upstreams, dir)
		server.Kill()
	}
}

// splitFlags returns the flags of the server in front and those of the etcd behind it.
func splitFlags(args []string) (own, store []string) {
	for n := 0; n < len(args); n++ {
		arg := args[n : n+1]
		name, _, joined := strings.Cut(args[n], "=")
		isStore, isShared := slices.Contains(storeFlags, name), slices.Contains(sharedFlags, name)
		if (isStore || isShared) && !joined && n+1 < len(args) {
			arg = args[n : n+2]
			n++
		}
		if isStore || isShared {
			store = append(store, arg...)
		}
		if !isStore {
			own = append(own, arg...)
		}
	}
	return own, store
}
