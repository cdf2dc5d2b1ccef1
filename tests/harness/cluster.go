package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Debian is the etcd 3.4 that Debian ships.
const Debian = "/usr/bin/etcd"

const pollInterval = 10 * time.Millisecond

// ClusterOptions say how a cluster of real etcd members is started. The zero value has useful defaults.
type ClusterOptions struct {
	Binary string     // etcd; Peer() by default
	Size   int        // members; 3 by default
	Args   []string   // more flags of each member
	TLS    *Authority // has issued "server"; clients need a certificate
	Synced bool       // the members sync their files
	Token  string     // different tokens make different cluster IDs
}

// Cluster is real etcd members on loopback. Each has a relay in front of its client port.
type Cluster struct {
	testing.TB
	Members []*Member
	Options ClusterOptions
}

// Member is one member of a cluster. Its process may change, its addresses do not.
type Member struct {
	*Server        // its process; of the last run, if it does not run
	Relay   *Relay // in front of its client port
	Name    string
	peerURL string
	running bool
	joins   bool // a cluster that exists
	cluster *Cluster
}

// StartCluster starts the members and ends them with the test.
func StartCluster(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	c := NewCluster(t, options)
	c.Start()
	return c
}

// NewCluster chooses addresses and directories, and starts nothing.
func NewCluster(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	if options.Binary == "" {
		options.Binary = Peer()
	}
	if options.Size == 0 {
		options.Size = 3
	}
	c := &Cluster{TB: t, Options: options}
	for n := range options.Size {
		c.Members = append(c.Members, c.newMember(n))
	}
	t.Cleanup(c.end)
	return c
}

func (c *Cluster) newMember(n int) *Member {
	c.Helper()
	m := &Member{Name: fmt.Sprintf("m%d", n), cluster: c,
		peerURL: fmt.Sprintf("http://127.0.0.1:%d", FreePort())}
	m.Server = newServer(Options{Dir: filepath.Join(c.TempDir(), m.Name), Port: FreePort(), TLS: c.Options.TLS != nil})
	var err error
	if m.Relay, err = NewRelay(m.Addr); err != nil {
		c.Fatal(err)
	}
	return m
}

func (c *Cluster) scheme() string {
	if c.Options.TLS != nil {
		return "https://"
	}
	return "http://"
}

func (c *Cluster) initial() string {
	var peers []string
	for _, m := range c.Members {
		peers = append(peers, m.Name+"="+m.peerURL)
	}
	return strings.Join(peers, ",")
}

func (m *Member) flags() []string {
	c := m.cluster
	flags := []string{"--name", m.Name, "--data-dir", m.Dir, "--listen-client-urls", m.URL,
		"--advertise-client-urls", m.RelayURL(), "--listen-peer-urls", m.peerURL,
		"--initial-advertise-peer-urls", m.peerURL, "--initial-cluster", c.initial(),
		"--initial-cluster-token", "t" + c.Options.Token, "--log-level", "info",
		"--heartbeat-interval", "50", "--election-timeout", "500"}
	progress := "watch-progress-notify-interval"
	if c.Options.Binary == Debian {
		progress = "experimental-" + progress
	}
	// The flag is not in the help of etcd 3.4, but has its effect there too.
	if !c.Options.Synced {
		flags = append(flags, "--unsafe-no-fsync")
	}
	flags = append(flags, "--"+progress, "200ms")
	if m.joins {
		flags = append(flags, "--initial-cluster-state", "existing")
	}
	if a := c.Options.TLS; a != nil {
		flags = append(flags, "--cert-file", a.Path("server.pem"), "--key-file", a.Path("server.key"),
			"--trusted-ca-file", a.Path("ca.pem"), "--client-cert-auth")
	}
	return append(flags, c.Options.Args...)
}

// AddLearner starts one more member, which does not vote, and waits until it serves.
func (c *Cluster) AddLearner() *Member {
	c.Helper()
	m := c.newMember(len(c.Members))
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	request := &pb.MemberAddRequest{PeerURLs: []string{m.peerURL}, IsLearner: true}
	if _, err := pb.NewClusterClient(c.Dial(c.Leader())).MemberAdd(ctx, request); err != nil {
		c.Fatal(err)
	}
	m.joins = true
	c.Members = append(c.Members, m)
	m.Begin()
	m.Ready()
	return m
}

// Promote lets a learner vote, once it has what the others have.
func (c *Cluster) Promote(m *Member) {
	c.Helper()
	id := c.Status(m).Header.MemberId
	leader := pb.NewClusterClient(c.Dial(c.Leader()))
	c.Eventually("a promotion", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		_, err := leader.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		return err == nil
	})
}

// RestoreFlags are those of a restore of a snapshot that keeps the ID of the cluster.
func (m *Member) RestoreFlags() []string {
	return []string{"--name", m.Name, "--data-dir", m.Dir, "--initial-cluster", m.cluster.initial(),
		"--initial-cluster-token", "t" + m.cluster.Options.Token, "--initial-advertise-peer-urls", m.peerURL}
}

// RelayURL is the member's address behind its relay.
func (m *Member) RelayURL() string { return m.cluster.scheme() + m.Relay.Addr }

// Begin starts the member's process and does not wait.
func (m *Member) Begin() {
	m.cluster.Helper()
	options := m.Options
	options.command = m.flags()
	server, err := Begin(m.cluster.Options.Binary, options)
	if err != nil {
		m.cluster.Fatal(err)
	}
	m.Server, m.running = server, true
}

// Ready waits until the member serves, for which it needs a leader.
func (m *Member) Ready() {
	m.cluster.Helper()
	if err := m.Server.Await(); err != nil {
		m.cluster.Fatal(err)
	}
}

// Kill ends the member at once. Begin starts it again.
func (m *Member) Kill() {
	if m.running {
		m.running = false
		m.Server.Kill()
	}
}

// Running says whether the member has a process.
func (m *Member) Running() bool { return m.running }

// Erase deletes the data of a member that does not run.
func (m *Member) Erase() {
	m.cluster.Helper()
	if err := os.RemoveAll(m.Dir); err != nil || m.running {
		m.cluster.Fatal("cannot erase a member: ", err)
	}
}

// Start starts all members that do not run, and waits until they serve.
func (c *Cluster) Start() {
	c.Helper()
	for _, m := range c.Members {
		if !m.running {
			m.Begin()
		}
	}
	for _, m := range c.Members {
		m.Ready()
	}
}

// Recover ends all faults: members run, and links carry.
func (c *Cluster) Recover() {
	c.Helper()
	for _, m := range c.Members {
		m.Relay.Restore()
		if m.running {
			m.Continue()
		}
	}
	c.Start()
	c.AwaitLeader()
}

func (c *Cluster) end() {
	for _, m := range c.Members {
		m.Relay.Close()
		m.Kill()
	}
}

// Dial connects to one member without its relay.
func (c *Cluster) Dial(m *Member) *grpc.ClientConn {
	c.Helper()
	conn, err := grpc.NewClient("passthrough:///"+m.Addr, c.credentials())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close() })
	return conn
}

// ClientTLS is what a client needs, or nil without TLS.
func (c *Cluster) ClientTLS() *tls.Config {
	if c.Options.TLS == nil {
		return nil
	}
	client := c.Options.TLS.Issue("harness")
	return c.Options.TLS.Config(&client)
}

func (c *Cluster) credentials() grpc.DialOption {
	if config := c.ClientTLS(); config != nil {
		return grpc.WithTransportCredentials(credentials.NewTLS(config))
	}
	return grpc.WithTransportCredentials(insecure.NewCredentials())
}

// Status is what a member says of itself, or nil if it does not answer.
func (c *Cluster) Status(m *Member) *pb.StatusResponse {
	conn, err := grpc.NewClient("passthrough:///"+m.Addr, c.credentials())
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	answer, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return nil
	}
	return answer
}

// Leader returns the member that leads, or nil.
func (c *Cluster) Leader() *Member {
	for _, m := range c.running() {
		if s := c.Status(m); s != nil && s.Leader != 0 && s.Leader == s.Header.MemberId {
			return m
		}
	}
	return nil
}

// AwaitLeader waits until a member leads.
func (c *Cluster) AwaitLeader() *Member {
	c.Helper()
	var leader *Member
	c.Eventually("a leader", func() bool {
		leader = c.Leader()
		return leader != nil
	})
	return leader
}

// AwaitLoss waits until a member knows that it has no leader.
func (c *Cluster) AwaitLoss(m *Member) {
	c.Helper()
	c.Eventually("loss of the leader", func() bool {
		s := c.Status(m)
		return s != nil && s.Leader == 0
	})
}

// Follower returns a running member that does not lead.
func (c *Cluster) Follower() *Member {
	c.Helper()
	leader := c.AwaitLeader()
	for _, m := range c.running() {
		if m != leader {
			return m
		}
	}
	c.Fatal("no follower runs")
	return nil
}

// Eventually waits until a condition is true, however slow the machine is.
func (c *Cluster) Eventually(what string, condition func() bool) {
	c.Helper()
	deadline := time.Now().Add(startLimit)
	for !condition() {
		if time.Now().After(deadline) {
			c.Fatalf("waited %v for %s", startLimit, what)
		}
		time.Sleep(pollInterval)
	}
}

// running are the members that answer.
func (c *Cluster) running() (members []*Member) {
	for _, m := range c.Members {
		if m.running && !m.paused() {
			members = append(members, m)
		}
	}
	return members
}

// Endpoints are the members' addresses behind their relays, separated by commas.
func (c *Cluster) Endpoints() string {
	var urls []string
	for _, m := range c.Members {
		urls = append(urls, m.RelayURL())
	}
	return strings.Join(urls, ",")
}
