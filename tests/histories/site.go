package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"vigil/tests/harness"
	"vigil/tests/watch"
)

// plan says what happens in a round.
type plan struct {
	seconds                int64
	clients, library, kube int // of clientv3, libvigil and client-go
	seed                   int64
	tools                  string // directory of histories_client, slow_disk and recorder
	start                  int64  // time at which the cells begin
}

// site is one server with its links and everything that is recorded with it.
type site struct {
	name    string
	binary  string
	options harness.Options
	server  *harness.Server
	links   []*harness.Relay
	disk    *disk
	book    *book
	kubeURL string

	workers   sync.WaitGroup
	watchers  []*watcher
	truth     *watcher
	processes []*process
}

func newSite(name, binary, dir string, p *plan) (*site, error) {
	s := &site{name: name, binary: binary, book: &book{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	control := filepath.Join(dir, "disk")
	var err error
	if s.disk, err = newDisk(control); err != nil {
		return nil, err
	}
	s.options = harness.Options{Dir: filepath.Join(dir, "data"), Port: harness.FreePort(),
		Launcher: []string{filepath.Join(p.tools, "slow_disk"), control}}
	kube := ""
	if !harness.IsEtcd(binary) && p.kube > 0 {
		kube = fmt.Sprintf("127.0.0.1:%d", harness.FreePort())
		s.options.Args = []string{"--listen-kube-urls=http://" + kube}
	}
	if s.server, err = harness.Launch(binary, s.options); err != nil {
		return nil, err
	}
	for _, addr := range []string{s.server.Addr, kube} {
		if addr == "" {
			continue
		}
		link, err := harness.NewRelay(addr)
		if err != nil {
			return nil, err
		}
		s.links = append(s.links, link)
	}
	if kube != "" {
		s.kubeURL = "http://" + s.links[1].Addr
	}
	return s, nil
}

// begin starts all clients and watches.
func (s *site) begin(p *plan, random *rand.Rand) error {
	through := s.links[0].Addr
	var err error
	everything := watch.Request{Key: "\x00", End: "\x00", Start: 1}
	if s.truth, err = startWatch(s.server.Addr, "everything", everything, true); err != nil {
		return err
	}
	for name, request := range map[string]watch.Request{
		"with previous values": {Key: "h/", End: "h0", Start: 1, Prev: true},
		"from now on":          {Key: "h/", End: "h0"},
		"leases":               {Key: "l/", End: "l0", Start: 1},
	} {
		w, err := startWatch(through, "clientv3, "+name, request, false)
		if err != nil {
			return err
		}
		s.watchers = append(s.watchers, w)
	}
	for n := range p.clients {
		client, err := connect(through)
		if err != nil {
			return err
		}
		w := &worker{Client: client, book: s.book, locks: lockpb.NewLockClient(client.ActiveConnection()), number: n,
			random: rand.New(rand.NewSource(random.Int63())), start: p.start, end: p.end(), seen: map[string]int64{}}
		s.workers.Go(w.run)
	}
	return s.beginProcesses(p, random)
}

func (p *plan) end() int64 { return p.start + p.seconds*int64(time.Second) }

func (s *site) beginProcesses(p *plan, random *rand.Rand) error {
	run := func(name, program, to string, clients int, request watch.Request) error {
		if clients == 0 || to == "" {
			return nil
		}
		arguments := []string{filepath.Join(p.tools, program), to, fmt.Sprint(p.start), fmt.Sprint(p.seconds),
			fmt.Sprint(clients), fmt.Sprint(random.Int31())}
		process, err := startProcess(s.book, name, arguments, request)
		if err == nil {
			s.processes = append(s.processes, process)
		}
		return err
	}
	return errors.Join(
		run("libvigil", "histories_client", "http://"+s.links[0].Addr, p.library, watch.Request{Key: "h/", End: "h0", Start: 1}),
		run("client-go", "recorder", s.kubeURL, p.kube, watch.Request{}))
}

// end waits for all clients, then for the watches, and returns the complete history.
func (s *site) end(p *plan) (*History, error) {
	s.workers.Wait()
	for _, process := range s.processes {
		<-process.idle
	}
	client, err := connect(s.server.Addr)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	revision, err := s.lastRevision(client)
	if err != nil {
		return nil, err
	}
	for _, process := range s.processes {
		err = errors.Join(err, process.finish(revision))
	}
	for _, w := range append(s.watchers, s.truth) {
		err = errors.Join(err, w.finish(revision))
		s.book.h.Watches = append(s.book.h.Watches, w.recording)
	}
	s.book.h.Server, s.book.h.Events = s.name, s.truth.events
	return &s.book.h, err
}

// lastRevision waits until the leases of the round have ended, and returns the revision after them.
func (s *site) lastRevision(client *clientv3.Client) (int64, error) {
	for deadline := time.Now().Add(settleLimit); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*callLimit)
		leases, err := client.Leases(ctx)
		var answer *clientv3.GetResponse
		if err == nil {
			answer, err = client.Get(ctx, "h/")
		}
		cancel()
		if err == nil && len(leases.Leases) == 0 {
			return answer.Header.Revision, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("%s: leases did not end: %v, %v", s.name, leases, err)
		}
	}
}

// close stops the server. It reports a server that does not stop cleanly.
func (s *site) close() error {
	for _, link := range s.links {
		link.Close()
	}
	s.disk.control.Close()
	return s.server.Stop()
}
