package power

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const (
	imagesDefault         = 200
	imagesGoal            = 10_000
	imagesOfRecording     = 500
	requestsOfWorker      = 110 // in each of two runs of the server
	serversOfRecording    = 3
	recoveriesOfRecording = 2
	imagesOfRecovery      = 10
)

func number(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// record runs a server under load twice on one directory, and ends it once by a kill.
func record(t testing.TB, seed int64) *recording {
	t.Helper()
	r := newRecording(t)
	runLoad(t, r, seed)
	return r
}

func runLoad(t testing.TB, r *recording, seed int64) {
	t.Helper()
	var all []*worker
	for id := range workers {
		all = append(all, newWorker(id, seed))
	}
	for run := range 2 {
		server := r.launch(t)
		conn, err := dial(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		l := &load{recording: r, conn: conn, seed: seed*2 + int64(run)}
		if err := l.run(all, requestsOfWorker); err != nil {
			t.Fatalf("%v\n%s", err, server.Log())
		}
		if run == 1 {
			if err := l.protect(all[0]); err != nil {
				t.Fatal(err)
			}
		}
		conn.Close()
		if (seed+int64(run))%2 == 0 {
			awaitMark(t, r.dir)
			server.Kill()
		} else if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitMark waits until the server has noted that it is idle.
func awaitMark(t testing.TB, dir string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "log", "MARK")); err == nil {
			return
		}
	}
	t.Fatal("the server never became idle")
}

func images() int { return int(number("VIGIL_IMAGES", imagesDefault)) }

// Whatever a power failure leaves on the disk, every acknowledged write is there at the next start.
// VIGIL_IMAGES and VIGIL_POWER_SEED change the number of images and the first seed.
func TestPowerFailures(t *testing.T) {
	seed := number("VIGIL_POWER_SEED", time.Now().UnixNano()%1_000_000)
	report.seed("first seed of the recordings", seed)
	var all, again totals
	recordings, positions, acked, servers := 0, 0, 0, 0
	check := func(r *recording, result totals, complaint string, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if result.Wrong > 0 {
			t.Errorf("seed %d, recording in %s: %d of %d images are wrong\n%s", seed, keep(t, r), result.Wrong, result.Images, complaint)
		}
	}
	for left := images(); left > 0 && !t.Failed(); seed++ {
		count := min(left, imagesOfRecording)
		left -= count
		r := record(t, seed)
		recordings, positions, acked = recordings+1, positions+int(r.position()), acked+r.history.acked
		result, complaint, err := r.images(count, seed)
		check(r, result, complaint, err)
		all.add(result)
		for dir, position := range r.imageDirs(t, serversOfRecording, seed+1) {
			if err := r.serve(dir, position); err != nil {
				t.Errorf("seed %d, recording in %s, position %d: %v", seed, keep(t, r), position, err)
			}
			servers++
		}
		for dir, position := range r.imageDirs(t, recoveriesOfRecording, seed+2) {
			result, complaint, err := r.failAgain(t, dir, position, imagesOfRecovery, seed)
			check(r, result, complaint, err)
			again.add(result)
		}
	}
	t.Logf("%d recordings, %d positions, %d requests acknowledged, %d servers: %+v, again %+v", recordings, positions, acked, servers, all, again)
	report.fact("recordings of a server under load", recordings)
	report.fact("calls in the recordings", positions/2)
	report.fact("requests acknowledged in the recordings", acked)
	report.fact("crash images opened", int(all.Images))
	report.fact("… of them wrong", int(all.Wrong))
	report.fact("… acknowledged writes looked for in them", int(all.Due))
	report.fact("… with a compaction", int(all.Compacted))
	report.fact("… unsynced writes in them", int(all.Writes))
	report.fact("… unsynced sectors in them", int(all.Sectors))
	report.fact("… sectors lost", int(all.SectorsLost))
	report.fact("… unsynced names in them", int(all.Names))
	report.fact("… names lost", int(all.NamesLost))
	report.fact("crash images served by the program and read by a client", servers)
	report.fact("images of a second failure, during the recovery from one", int(again.Images))
	report.fact("… of these wrong", int(again.Wrong))
	report.row("crash images opened", float64(all.Images), imagesGoal, all.Images >= imagesGoal)
	report.row("crash images that lack an acknowledged write or are inconsistent", float64(all.Wrong+again.Wrong), 0, all.Wrong+again.Wrong == 0)
}

// A disk that ignores syncs loses acknowledged writes, and the images show it.
func TestIgnoredSyncsAreFound(t *testing.T) {
	r := newRecording(t)
	r.lies = true
	runLoad(t, r, 1)
	const count = 60
	result, complaint, err := r.images(count, 1, "--none")
	if err != nil {
		t.Fatal(err)
	}
	if result.Wrong < count/4 || result.Lost == 0 {
		t.Errorf("of %d images %d are wrong, and %d of them lack a write\n%s", result.Images, result.Wrong, result.Lost, complaint)
	}
	report.fact("planted fault, syncs that do nothing: wrong images of 60", int(result.Wrong))
}

// keep moves the recording to where it stays after the test.
func keep(t testing.TB, r *recording) string {
	to, err := os.MkdirTemp("", "vigil-power-")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{r.log, r.historyPath()} {
		bytes, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), bytes, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}
