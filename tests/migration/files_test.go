package migration

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"vigil/tests/harness"
)

func etcdutl() string { return filepath.Join(filepath.Dir(harness.Peer()), "etcdutl") }

// snapshotOf saves a snapshot of the server.
func snapshotOf(l *loader) string {
	l.Helper()
	path := filepath.Join(l.TempDir(), "saved.snap")
	reader, err := l.client.Snapshot(l.ctx)
	l.must(err)
	defer reader.Close()
	file, err := os.Create(path)
	l.must(err)
	defer file.Close()
	_, err = file.ReadFrom(reader)
	l.must(err)
	return path
}

// small is the snapshot of a real etcd with a little of everything.
func small(t *testing.T) string {
	t.Helper()
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(600)
	l.leases()
	l.users()
	return snapshotOf(l)
}

func TestSnapshotOfEtcdIsRestored(t *testing.T) {
	const keys = 2000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases()
	snapshot := snapshotOf(l)
	restored := filepath.Join(t.TempDir(), "restored")
	command(t, "snapshot", "restore", snapshot, "--data-dir", restored)
	vigil := harness.Start(t, harness.Options{Dir: restored})
	(&pair{t, l.ctx, l.client, newClient(t, vigil, "", "")}).all(keys)
}

func TestStatusEqualsEtcdutls(t *testing.T) {
	snapshot := small(t)
	for _, format := range []string{"simple", "json", "fields"} {
		want, err := exec.Command(etcdutl(), "snapshot", "status", snapshot, "-w", format).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := command(t, "snapshot", "status", snapshot, "-w", format); got != string(want) {
			t.Errorf("%s: %s, etcdutl prints %s", format, got, want)
		}
	}
	if short, long := command(t, "snapshot", "status", snapshot, "--json"),
		command(t, "snapshot", "status", snapshot, "-w", "json"); short != long {
		t.Errorf("--json: %s, -w json: %s", short, long)
	}
	table := command(t, "snapshot", "status", "--write-out=table", snapshot)
	if !strings.Contains(table, "| TOTAL KEYS |") || strings.Count(table, "\n") != 5 {
		t.Errorf("%s", table)
	}
}

func TestRaisedRevisionIsCompacted(t *testing.T) {
	snapshot := small(t)
	dir := filepath.Join(t.TempDir(), "restored")
	var s summary
	out := command(t, "snapshot", "restore", snapshot, "--data-dir", dir, "--bump-revision", "1000000",
		"--mark-compacted", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	vigil := harness.Start(t, harness.Options{Dir: dir})
	client, ctx := newClient(t, vigil, "", ""), newContext(t)
	response, err := client.Get(ctx, key(1))
	if err != nil || response.Header.Revision != s.Revision || s.Revision < 1000000 ||
		s.CompactRevision != s.Revision || len(response.Kvs) != 1 {
		t.Errorf("%+v: %v %v", s, response, err)
	}
	put, err := client.Put(ctx, "next", "")
	if err != nil || put.Header.Revision != s.Revision+1 {
		t.Errorf("%v %v", put, err)
	}
}

// refused checks that a command fails with exit status 1 and a last line that contains all of these,
// and that it leaves no directory behind.
func refused(t *testing.T, dir string, args []string, says ...string) {
	t.Helper()
	out, text, err := tryCommand(args...)
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
		t.Errorf("%v: %v, %s%s", args, err, out, text)
		return
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := lines[len(lines)-1]
	for _, what := range says {
		if !strings.Contains(last, what) {
			t.Errorf("%v prints %q, and not %q", args, last, what)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%v has left %s", args, dir)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	good, err := os.ReadFile(small(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	dir := filepath.Join(folder, "data")
	write := func(name string, bytes []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	body := good[:len(good)-32]
	noMetas := bytes.Clone(body)
	noMetas[16+32] ^= 1
	noMetas[4096+16+32] ^= 1
	version := bytes.Clone(body)
	version[16+4], version[4096+16+4] = 3, 3
	magic := bytes.Clone(body)
	magic[16] ^= 1
	magic[4096+16] ^= 1
	other := filepath.Join(folder, "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	newer := write("newer.db", body)
	db, err = bbolt.Open(newer, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("storageVersion"), []byte("3.9.0"))
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()

	cases := []struct {
		path string
		says string
	}{
		{filepath.Join(folder, "nowhere"), "there is nothing at"},
		{write("empty", nil), "is empty"},
		{write("text", []byte(strings.Repeat("not a snapshot ", 1000))), "was truncated or is not a snapshot"},
		{write("zeros", make([]byte, 65536)), "not a bbolt file"},
		{write("flipped", flipped), "sha256"},
		{write("cut", good[:len(good)-700]), "was truncated"},
		{write("cut page", good[:len(body)-8192]), "was truncated"},
		{write("metas", noMetas), "both meta pages"},
		{write("version", version), "version 3"},
		{write("magic", magic), "not a bbolt file"},
		{other, "not etcd's"},
		{newer, "newer than 3.7"},
		{"/dev/null", "neither a file nor a directory"},
	}
	for _, c := range cases {
		refused(t, dir, []string{"import", "--data-dir", dir, c.path}, c.path, c.says, ";")
		refused(t, dir, []string{"snapshot", "status", c.path}, c.path, c.says)
		refused(t, dir, []string{"snapshot", "restore", c.path, "--data-dir", dir}, c.path)
	}
	refused(t, dir, []string{"import", "--data-dir", dir, folder}, "not a data directory of etcd")
	refused(t, dir, []string{"snapshot", "restore", "--data-dir", dir, folder}, "is a directory")
	refused(t, dir, []string{"snapshot", "restore", "--data-dir", dir, write("no sum", body)}, "no checksum")
	command(t, "snapshot", "restore", "--data-dir", dir, "--skip-hash-check", write("no sum", body))
	_, text, err := tryCommand("import", "--data-dir", dir, write("good", good))
	if err == nil || !strings.Contains(text, "not empty") {
		t.Errorf("an existing directory was accepted: %v %s", err, text)
	}
}

// withEntry makes a file of etcd that has one revision, of a key "k", and one more number in meta.
func withEntry(t *testing.T, revision, version int64, name string, number int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	revisionBytes := func(main int64) []byte {
		return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), 0)
	}
	kv, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte("k"), CreateRevision: 1, ModRevision: revision, Version: version})
	must(t, err)
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		must(t, err)
		meta, err := tx.CreateBucket([]byte("meta"))
		must(t, err)
		must(t, keys.Put(revisionBytes(revision), kv))
		return meta.Put([]byte(name), revisionBytes(number))
	}))
	must(t, db.Close())
	return path
}

// A store that accepted them would have no revisions left for later writes.
func TestImpossibleRevisionsAreRefused(t *testing.T) {
	const most = math.MaxInt64 / 2
	dir := filepath.Join(t.TempDir(), "data")
	cases := []struct {
		path, says string
	}{
		{withEntry(t, most+1, 1, "finishedCompactRev", 1), "larger than any revision"},
		{withEntry(t, 9, 1, "finishedCompactRev", math.MaxInt64), "compacted at revision"},
		{withEntry(t, 9, 1, "scheduledCompactRev", most+1), "compacted at revision"},
		{withEntry(t, 9, 10, "finishedCompactRev", 1), "says that it is another one"},
	}
	for _, c := range cases {
		refused(t, dir, []string{"import", "--data-dir", dir, c.path}, c.path, c.says, "use another snapshot")
	}
	good := withEntry(t, most-1, most-1, "finishedCompactRev", most-2)
	refused(t, dir, []string{"snapshot", "restore", good, "--data-dir", dir, "--skip-hash-check",
		"--bump-revision", "2", "--mark-compacted"}, "cannot be raised by 2")
	if s := importInto(t, dir, good); s.Revision != most-1 || s.CompactRevision != most-2 || s.Keys != 1 {
		t.Errorf("%+v", s)
	}
}

// A changed file whose checksum is skipped is imported or refused; the import never crashes.
func TestChangedFilesAreReadOrRefused(t *testing.T) {
	good, err := os.ReadFile(small(t))
	if err != nil {
		t.Fatal(err)
	}
	body := good[:len(good)-32]
	random := rand.New(rand.NewSource(1))
	for i := range 24 {
		changed := bytes.Clone(body)
		switch i % 3 {
		case 0: // the heads of pages and elements
			page := 2 + random.Intn(len(body)/4096-2)
			changed[page*4096+random.Intn(200)] ^= byte(1 << random.Intn(8))
		case 1:
			changed[random.Intn(len(changed))] ^= byte(1 << random.Intn(8))
		case 2:
			changed = changed[:random.Intn(len(changed)/512)*512]
		}
		path := filepath.Join(t.TempDir(), "changed")
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "data")
		_, text, err := tryCommand("import", "--skip-hash-check", "--data-dir", dir, path)
		exit, failed := err.(*exec.ExitError)
		if err != nil && (!failed || exit.ExitCode() != 1 || !strings.Contains(text, path)) {
			t.Errorf("change %d: %v\n%s", i, err, text)
		}
	}
}

func TestRunningEtcdIsRefused(t *testing.T) {
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	dir := filepath.Join(t.TempDir(), "data")
	refused(t, dir, []string{"import", "--data-dir", dir, etcd.Dir}, "in use by a running etcd", "snapshot save")
	file := filepath.Join(etcd.Dir, "member", "snap", "db")
	refused(t, dir, []string{"snapshot", "restore", "--skip-hash-check", "--data-dir", dir, file}, "in use by a running etcd")
	copied := filepath.Join(t.TempDir(), "db")
	if err := os.Link(file, copied); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, []string{"import", "--data-dir", dir, copied}, "in use by a running etcd")
}

func TestFileNextToItsLogIsRefused(t *testing.T) {
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	etcd.Kill()
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(etcd.Dir, "member", "snap", "db")
	refused(t, dir, []string{"import", "--data-dir", dir, file}, "write-ahead log beside it", "name the data directory")
	if _, text, err := tryCommand("snapshot", "restore", "--skip-hash-check", "--data-dir", dir, file); err != nil {
		t.Error(err, text)
	}
}

func TestDamagedLogsAreRefusedAndTornOnesAreImported(t *testing.T) {
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true, Args: lazyBackend})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.put(0, 2000, 0)
	etcd.Kill()
	logs, err := filepath.Glob(filepath.Join(etcd.Dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	good, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(good, "\x00"))
	whole := importInto(t, filepath.Join(t.TempDir(), "data"), etcd.Dir)
	with := func(change func(log []byte) []byte) {
		if err := os.WriteFile(logs[0], change(bytes.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	with(func(log []byte) []byte { log[used/2] ^= 4; return log })
	dir := filepath.Join(t.TempDir(), "data")
	refused(t, dir, []string{"import", "--data-dir", dir, etcd.Dir}, logs[0], "damaged", "offset", "use a snapshot")

	with(func(log []byte) []byte { clear(log[used-1500:]); return log })
	torn := importInto(t, filepath.Join(t.TempDir(), "data"), etcd.Dir)
	if !torn.LogTorn || torn.Revision >= whole.Revision || torn.Revision == 0 {
		t.Errorf("%+v", torn)
	}

	with(func(log []byte) []byte { return log[:used-100] })
	cut := importInto(t, filepath.Join(t.TempDir(), "data"), etcd.Dir)
	if !cut.LogTorn || cut.Revision >= whole.Revision {
		t.Errorf("%+v", cut)
	}

	if err := os.Remove(logs[0]); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, []string{"import", "--data-dir", dir, etcd.Dir}, "write-ahead log", "--wal-dir")
}

func TestInterruptedImportIsNotServedAndCanBeRepeated(t *testing.T) {
	snapshot := small(t)
	dir := filepath.Join(t.TempDir(), "data")
	// The directory that a killed import leaves at the end.
	for _, part := range []string{"import.tmp/meta", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server, err := harness.Launch(harness.Subject(), harness.Options{Dir: dir})
	if err == nil {
		server.Kill()
		t.Error("the directory was served")
	} else if !strings.Contains(err.Error(), "an import that was not finished") {
		t.Error(err)
	}
	importInto(t, dir, snapshot)
	harness.Start(t, harness.Options{Dir: dir})
}

// The remaining time that etcd has stored for a lease is used at Vigil's first start, and not again.
func TestRemainingTimeOfALeaseIsUsedOnce(t *testing.T) {
	const left = 1000
	snapshot := small(t)
	db, err := bbolt.Open(snapshot, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("lease"))
		id, lease := bucket.Cursor().First()
		return bucket.Put(bytes.Clone(id), append(bytes.Clone(lease), 3<<3, left&0x7f|0x80, left>>7)) // RemainingTTL
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	dir := filepath.Join(t.TempDir(), "restored")
	command(t, "snapshot", "restore", "--skip-hash-check", snapshot, "--data-dir", dir)
	ctx := newContext(t)
	for start := range 3 {
		vigil := harness.Start(t, harness.Options{Dir: dir})
		client := newClient(t, vigil, "", "")
		leases, err := client.Leases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		short := 0
		for _, lease := range leases.Leases {
			ttl, err := client.TimeToLive(ctx, lease.ID)
			if err != nil || ttl.GrantedTTL < leaseTTL {
				t.Fatal(ttl, err)
			}
			if ttl.TTL <= left {
				short++
			}
		}
		if want := map[bool]int{true: 1}[start == 0]; short != want || len(leases.Leases) != leaseCount-1 {
			t.Errorf("start %d: %d of %d leases have little time left", start, short, len(leases.Leases))
		}
		if err := vigil.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
