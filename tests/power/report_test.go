package power

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vigil/tests/harness"
)

// reportRow is a line of the table in the report.
type reportRow struct {
	Row   string  `json:"row"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Goal  float64 `json:"goal"`
	Met   bool    `json:"met"`
}

// runReport is what VIGIL_POWER_REPORT=FILE writes, in the form that all parts of the report have.
type runReport struct {
	Part    string      `json:"part"`
	Command string      `json:"command"`
	Commit  string      `json:"commit"`
	Date    string      `json:"date"`
	Seconds float64     `json:"seconds"`
	Facts   [][3]any    `json:"facts"`
	Plots   []any       `json:"plots"`
	Rows    []reportRow `json:"rows"`
}

var report = runReport{Part: "power", Command: "make power", Plots: []any{}}

func (r *runReport) fact(name string, value int) {
	r.Facts = append(r.Facts, [3]any{name, value, ""})
}

// seed is a fact that is not counted.
func (r *runReport) seed(name string, value int64) {
	r.Facts = append(r.Facts, [3]any{name, fmt.Sprint(value), ""})
}

func (r *runReport) row(name string, value, goal float64, met bool) {
	r.Rows = append(r.Rows, reportRow{Row: name, Value: value, Goal: goal, Met: met})
}

func (r *runReport) save(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func TestMain(m *testing.M) {
	begin := time.Now()
	if commit, err := exec.Command(filepath.Join(harness.Root(), "tools/commit-name")).Output(); err == nil {
		report.Commit = strings.TrimSpace(string(commit))
	}
	code := m.Run()
	if path := os.Getenv("VIGIL_POWER_REPORT"); path != "" && code == 0 {
		report.Date = begin.UTC().Format(time.RFC3339)
		report.Seconds = time.Since(begin).Round(100 * time.Millisecond).Seconds()
		if err := report.save(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
