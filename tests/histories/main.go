package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"vigil/tests/harness"
)

const gcPercent = 400 // memory is there, and the clients need the processor

func main() {
	total := newTotal()
	seconds := flag.Int64("seconds", 600, "how long to record and check")
	round := flag.Int64("round", 40, "seconds of recording in a round; at most half of all")
	enough := flag.Int("operations", 0, "end after the round with this many operations in all, if it comes first")
	seed := flag.Int64("seed", time.Now().UnixNano(), "for operations and faults")
	limit := flag.Duration("limit", 20*time.Second, "for the search of one partition")
	report := flag.String("report", "", "file for the report")
	p := &plan{}
	only := flag.String("faults", "", "only faults whose names contain this")
	flag.IntVar(&p.clients, "clients", 40, "clients of clientv3 for each server")
	flag.IntVar(&p.library, "library", 40, "clients of libvigil for each server")
	flag.IntVar(&p.kube, "kube", 3, "clients of client-go for Vigil")
	flag.StringVar(&p.tools, "tools", filepath.Join(harness.Root(), "build-test"), "directory of histories_client, slow_disk and recorder")
	again := flag.String("check", "", "check this saved history, and record nothing")
	flag.Parse()
	if *again != "" {
		checkSaved(*again, *limit)
		return
	}
	p.seed, total.seed = *seed, *seed
	debug.SetGCPercent(gcPercent)
	p.seconds = min(*round, max(1, *seconds/2))
	allFaults = slices.DeleteFunc(allFaults, func(f fault) bool { return !strings.Contains(f.name, *only) })
	fmt.Printf("seed %d\n", *seed)
	random := rand.New(rand.NewSource(*seed))
	longest := time.Duration(0)
	for n := 1; ; n++ {
		begin := time.Now()
		if err := runRound(p, random, *limit, total, n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		longest = max(longest, time.Since(begin))
		isEnough := *enough > 0 && total.count("", "", "") >= *enough
		if isEnough || total.elapsed()+longest > time.Duration(*seconds)*time.Second {
			break
		}
	}
	total.print()
	if *report != "" {
		if err := total.write(*report); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if !total.passed() {
		os.Exit(1)
	}
}

// runRound records one history of each server under the same faults, and checks both.
func runRound(p *plan, random *rand.Rand, limit time.Duration, total *total, number int) error {
	dir, err := os.MkdirTemp("", "histories-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var sites []*site
	for _, binary := range []string{harness.Subject(), harness.Peer()} {
		name := filepath.Base(binary)
		s, err := newSite(name, binary, filepath.Join(dir, name), p)
		if err != nil {
			return err
		}
		sites = append(sites, s)
	}
	p.start = now()
	for _, s := range sites {
		if err := s.begin(p, random); err != nil {
			return err
		}
	}
	counts := map[string]int{}
	err = disturb(sites, random, p.end(), counts)
	for _, s := range sites {
		if err != nil {
			break // its clients may wait for a server that does not run
		}
		err = checkSite(s, p, limit, total, number)
	}
	for _, s := range sites {
		err = errors.Join(err, s.close())
	}
	total.faults(counts)
	return err
}

// checkSaved checks a history that an earlier run has saved.
func checkSaved(path string, limit time.Duration) {
	h, err := load(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	total, begin := newTotal(), time.Now()
	v := Check(h, limit)
	total.add(1, h, v, time.Since(begin))
	if !v.Passed() {
		os.Exit(1)
	}
}

func checkSite(s *site, p *plan, limit time.Duration, total *total, number int) error {
	h, err := s.end(p)
	if err != nil {
		return err
	}
	begin := time.Now()
	v := Check(h, limit)
	total.add(number, h, v, time.Since(begin))
	if v.Passed() {
		return nil
	}
	path, err := save(h, p.seed, number)
	fmt.Printf("the history is in %s; to check it again: histories --check %s\n", path, path)
	return err
}
