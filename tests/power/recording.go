// Package power records what a server under load does to its disk, has images of the disk made as a
// power failure could leave it, and has each opened and compared with what the server acknowledged.
package power

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"vigil/tests/harness"
)

// recording is a data directory, the recording of what was done to it, and what clients did meanwhile.
type recording struct {
	dir, log string
	history  *history
	counter  *atomic.Uint64 // tickets of the recorder, in memory that is shared with the server
	port     int
	fault    string // POWER_FAIL
	lies     bool   // syncs do nothing

	newest    atomic.Int64 // the highest acknowledged revision
	compacted int64        // the last compaction that was requested
	lastLease atomic.Int64
}

func newRecording(t testing.TB) *recording {
	t.Helper()
	top := t.TempDir()
	r := &recording{dir: filepath.Join(top, "data"), log: filepath.Join(top, "log"), port: harness.FreePort(), history: &history{}}
	r.mapCounter(t)
	return r
}

// mapCounter makes the file before the recorder does.
func (r *recording) mapCounter(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(r.log+".seq", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(8); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(memory) })
	r.counter = (*atomic.Uint64)(unsafe.Pointer(&memory[0]))
}

func (r *recording) position() uint64 { return r.counter.Load() }

func (r *recording) countPath() string   { return r.log + ".count" }
func (r *recording) historyPath() string { return r.log + ".history" }

func (r *recording) options() harness.Options {
	env := []string{"LD_PRELOAD=" + tool("libpower_record.so"), "POWER_DIR=" + r.dir, "POWER_LOG=" + r.log, "POWER_COUNT=" + r.countPath()}
	if r.fault != "" {
		env = append(env, "POWER_FAIL="+r.fault)
	}
	if r.lies {
		env = append(env, "POWER_LIE=30") // the first start is past
	}
	// Small enough that segments are filled and checkpoints written within a second.
	flags := []string{"--segment-bytes", "4194304", "--checkpoint-bytes", "1048576", "--bcrypt-cost", "4"}
	return harness.Options{Dir: r.dir, Port: r.port, Env: env, Args: flags}
}

// launch starts the server and waits until it serves.
func (r *recording) launch(t testing.TB) *harness.Server {
	t.Helper()
	server, err := harness.Launch(harness.Subject(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// tool is a program or library beside the server under test.
func tool(name string) string {
	return filepath.Join(filepath.Dir(harness.Subject()), "unit", name)
}

// totals are the numbers that power_images prints.
type totals struct {
	Images      uint64            `json:"images"`
	Wrong       uint64            `json:"wrong"`
	Lost        uint64            `json:"lost"` // an acknowledged write is missing, and nothing else seems wrong
	Due         uint64            `json:"due"`
	Revisions   uint64            `json:"revisions"`
	Compacted   uint64            `json:"compacted"`
	Clean       uint64            `json:"clean"`
	Writes      uint64            `json:"writes"`
	WritesLost  uint64            `json:"writes_lost"`
	Sectors     uint64            `json:"sectors"`
	SectorsLost uint64            `json:"sectors_lost"`
	Names       uint64            `json:"names"`
	NamesLost   uint64            `json:"names_lost"`
	Styles      map[string]uint64 `json:"styles"`
}

func (t *totals) add(other totals) {
	t.Images += other.Images
	t.Wrong += other.Wrong
	t.Lost += other.Lost
	t.Due += other.Due
	t.Revisions += other.Revisions
	t.Compacted += other.Compacted
	t.Clean += other.Clean
	t.Writes += other.Writes
	t.WritesLost += other.WritesLost
	t.Sectors += other.Sectors
	t.SectorsLost += other.SectorsLost
	t.Names += other.Names
	t.NamesLost += other.NamesLost
}

// runImages runs power_images; what it printed is the complaint if an image is wrong.
func runImages(arguments ...string) (result totals, complaint string, err error) {
	arguments = append(arguments, "--jobs", strconv.Itoa(runtime.NumCPU()))
	command := exec.Command(tool("power_images"), arguments...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	ended := command.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		return result, "", fmt.Errorf("power_images: %v: %s%s", ended, &out, &problems)
	}
	if ended != nil && result.Wrong == 0 {
		return result, "", fmt.Errorf("power_images: %v: %s%s", ended, &out, &problems)
	}
	return result, strings.Join(lines[:len(lines)-1], "\n") + problems.String(), nil
}

// images makes and opens images of the recording.
func (r *recording) images(count int, seed int64, more ...string) (totals, string, error) {
	if err := r.history.save(r.historyPath()); err != nil {
		return totals{}, "", err
	}
	return runImages(append([]string{"--log", r.log, "--history", r.historyPath(),
		"--images", strconv.Itoa(count), "--seed", strconv.FormatInt(seed, 10)}, more...)...)
}

// open opens the data directory as it is, without a loss of power.
func (r *recording) open() (totals, string, error) {
	if err := r.history.save(r.historyPath()); err != nil {
		return totals{}, "", err
	}
	return runImages("--history", r.historyPath(), "--open", r.dir)
}
