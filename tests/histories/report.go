package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vigil/tests/harness"
)

const operationsGoal = 1_000_000

// total adds up all rounds.
type total struct {
	begin        time.Time
	commit       string
	seed         int64
	rounds       int
	ops          map[string]map[string]map[Outcome]int // server, kind, outcome
	faultCounts  map[string]int
	partitions   int
	searched     int
	largest      int
	undecided    int
	revisions    int64
	watched      int
	informers    int
	checkSeconds float64
	violations   map[string]int // by server
	points       map[string][][2]float64
}

func newTotal() *total {
	commit, _ := exec.Command(filepath.Join(harness.Root(), "tools/commit-name")).Output()
	return &total{begin: time.Now(), commit: strings.TrimSpace(string(commit)), ops: map[string]map[string]map[Outcome]int{}, faultCounts: map[string]int{},
		violations: map[string]int{}, points: map[string][][2]float64{}}
}

func (t *total) elapsed() time.Duration { return time.Since(t.begin) }

func (t *total) faults(counts map[string]int) {
	for name, count := range counts {
		t.faultCounts[name] += count
	}
}

// add counts the history of one server in one round, and prints the verdict.
func (t *total) add(round int, h *History, v *Verdict, checked time.Duration) {
	t.rounds = max(t.rounds, round)
	kinds := t.ops[h.Server]
	if kinds == nil {
		kinds = map[string]map[Outcome]int{}
		t.ops[h.Server] = kinds
	}
	answered := 0
	for _, o := range h.Ops {
		if kinds[o.Kind] == nil {
			kinds[o.Kind] = map[Outcome]int{}
		}
		kinds[o.Kind][o.Outcome]++
		if o.Outcome == Done {
			answered++
		}
	}
	t.partitions += v.Partitions
	t.searched += v.Operations
	t.largest = max(t.largest, v.Largest)
	t.undecided += v.Undecided
	t.revisions += v.Revisions - 1
	t.watched += v.Watched
	t.informers += len(h.Informers)
	t.checkSeconds += checked.Seconds()
	t.violations[h.Server] += len(v.Violations)
	t.points[h.Server] = append(t.points[h.Server], [2]float64{float64(round), float64(len(h.Ops))})
	verdict := "passed"
	if len(v.Violations) > 0 {
		verdict = fmt.Sprintf("%d violations", len(v.Violations))
	} else if v.Undecided > 0 {
		verdict = fmt.Sprintf("undecided in %d partitions", v.Undecided)
	}
	fmt.Printf("round %d %-5s %6d operations, %6d answered, %4d partitions of up to %4d, %6d revisions, %6d events, checked in %.1f s: %s\n",
		round, h.Server, len(h.Ops), answered, v.Partitions, v.Largest, v.Revisions-1, v.Watched, checked.Seconds(), verdict)
	for _, violation := range v.Violations {
		fmt.Printf("VIOLATION of %s: %s\n", h.Server, violation)
	}
}

// passed is false after a violation of any server: one of etcd is most likely a fault of the recording or of a check.
func (t *total) passed() bool {
	found := 0
	for _, count := range t.violations {
		found += count
	}
	return t.undecided == 0 && found == 0 && t.count("", "", "") > 0
}

// count adds up operations of a server, kind and outcome; an empty one means all.
func (t *total) count(server, kind string, outcome Outcome) (count int) {
	for s, kinds := range t.ops {
		for k, outcomes := range kinds {
			for o, n := range outcomes {
				if (server == "" || s == server) && (kind == "" || k == kind) && (outcome == "" || o == outcome) {
					count += n
				}
			}
		}
	}
	return count
}

// facts are [name, number, unit], for people and for the report.
func (t *total) facts() (facts [][3]any) {
	add := func(name string, value any, unit string) { facts = append(facts, [3]any{name, value, unit}) }
	add("seed", fmt.Sprint(t.seed), "")
	add("operations", t.count("", "", ""), "")
	for _, server := range slices.Sorted(maps.Keys(t.ops)) {
		for _, outcome := range []Outcome{Done, Refused, Unknown} {
			add(fmt.Sprintf("%s: %s", server, outcome), t.count(server, "", outcome), "")
		}
		for _, kind := range slices.Sorted(maps.Keys(t.ops[server])) {
			add(fmt.Sprintf("%s: %s", server, kind), t.count(server, kind, ""), "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.faultCounts)) {
		add("fault: "+name, t.faultCounts[name], "")
	}
	add("rounds", t.rounds, "")
	add("partitions searched", t.partitions, "")
	add("operations in partitions", t.searched, "")
	add("largest partition", t.largest, "operations")
	add("partitions undecided", t.undecided, "")
	add("revisions attributed", t.revisions, "")
	add("watch events compared", t.watched, "")
	add("informers compared", t.informers, "")
	add("time of the checks", t.checkSeconds, "s")
	for _, server := range slices.Sorted(maps.Keys(t.ops)) {
		add("violations of "+server, t.violations[server], "")
	}
	return facts
}

func (t *total) print() {
	for _, fact := range t.facts() {
		if value, isFloat := fact[1].(float64); isFloat {
			fact[1] = fmt.Sprintf("%.1f", value)
		}
		fmt.Printf("%10v %s %s\n", fact[1], fact[0], fact[2])
	}
	verdict := "passed"
	switch bad := t.undecided; {
	case t.passed():
	case bad > 0:
		verdict = "undecided, not passed"
	default:
		verdict = "VIOLATED"
	}
	fmt.Printf("verdict: %s\n", verdict)
}

// write makes the file for the report of the project.
func (t *total) write(path string) error {
	var series []map[string]any
	for _, server := range slices.Sorted(maps.Keys(t.points)) {
		series = append(series, map[string]any{"name": server, "points": t.points[server]})
	}
	row := func(name string, value, goal float64, met bool) map[string]any {
		return map[string]any{"row": name, "value": value, "unit": "", "goal": goal, "met": met}
	}
	operations := float64(t.count("", "", ""))
	rows := []map[string]any{row("operations in checked histories", operations, operationsGoal, operations >= operationsGoal),
		row("partitions undecided", float64(t.undecided), 0, t.undecided == 0)}
	for _, server := range slices.Sorted(maps.Keys(t.ops)) {
		rows = append(rows, row("violations of "+server, float64(t.violations[server]), 0, t.violations[server] == 0))
	}
	text, err := json.MarshalIndent(map[string]any{
		"part": "histories", "command": "make histories", "commit": t.commit,
		"date": t.begin.UTC().Format(time.RFC3339), "seconds": t.elapsed().Seconds(), "facts": t.facts(), "rows": rows,
		"plots": []map[string]any{{"title": "Operations of each round under faults", "x": "round", "y": "operations", "log": false, "series": series}},
	}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
