package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	"vigil/tests/harness"
)

// fault is something bad that happens to a server and its links, and is over when the function returns.
type fault struct {
	name   string
	happen func(s *site, length time.Duration) error
}

var allFaults = []fault{
	{"kill", func(s *site, _ time.Duration) error { return s.restart() }},
	{"pause", func(s *site, length time.Duration) error {
		err := s.server.Pause()
		time.Sleep(length)
		s.server.Continue()
		return err
	}},
	{"slow disk", func(s *site, length time.Duration) error {
		s.disk.delay(length / 20)
		time.Sleep(length)
		s.disk.delay(0)
		return nil
	}},
	{"connections cut", func(s *site, _ time.Duration) error {
		s.eachLink(func(r *harness.Relay) { r.CutAll() })
		return nil
	}},
	{"link down", func(s *site, length time.Duration) error {
		s.linkFault(length, func(r *harness.Relay) { r.Cut() })
		return nil
	}},
	{"link stalled", func(s *site, length time.Duration) error {
		s.linkFault(length, func(r *harness.Relay) { r.Stall() })
		return nil
	}},
	{"link slow", func(s *site, length time.Duration) error {
		s.linkFault(length, func(r *harness.Relay) { r.Slow(length / 100) })
		return nil
	}},
	{"connections half closed", func(s *site, length time.Duration) error {
		s.eachLink(func(r *harness.Relay) { r.HalfClose(length%2 == 0) })
		return nil
	}},
	{"pause, then kill", func(s *site, length time.Duration) error {
		err := s.server.Pause()
		time.Sleep(length)
		if err != nil {
			return err
		}
		return s.restart()
	}},
}

func (s *site) eachLink(do func(*harness.Relay)) {
	for _, link := range s.links {
		do(link)
	}
}

func (s *site) linkFault(length time.Duration, begin func(*harness.Relay)) {
	s.eachLink(begin)
	time.Sleep(length)
	s.eachLink((*harness.Relay).Restore)
}

// restart kills the server with SIGKILL and starts it again with the same data and address.
func (s *site) restart() error {
	s.server.Kill()
	server, err := harness.Launch(s.binary, s.options)
	if err == nil {
		s.server = server
	}
	return err
}

// disturb lets the same faults happen to all sites at the same times, until the end.
func disturb(sites []*site, random *rand.Rand, end int64, counts map[string]int) error {
	failures := make([]error, len(sites))
	for {
		time.Sleep(time.Duration(300+random.Intn(1200)) * time.Millisecond)
		if now() > end {
			return nil
		}
		f := allFaults[random.Intn(len(allFaults))]
		length := time.Duration(100+random.Intn(1000))*time.Millisecond + time.Duration(random.Intn(2))
		counts[f.name]++
		var done sync.WaitGroup
		for i, s := range sites {
			done.Go(func() { failures[i] = f.happen(s, length) })
		}
		done.Wait()
		for i, err := range failures {
			if err != nil {
				return fmt.Errorf("%s after %s: %w", sites[i].name, f.name, err)
			}
		}
	}
}

// disk makes the syncs of a server slow: see disk/slow_disk.c.
type disk struct{ control *os.File }

func newDisk(path string) (*disk, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	d := &disk{file}
	d.delay(0)
	return d, nil
}

// delay sets the time that each sync takes in addition.
func (d *disk) delay(delay time.Duration) {
	d.control.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(delay.Microseconds())), 0)
}
