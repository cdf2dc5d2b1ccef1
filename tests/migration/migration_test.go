package migration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vigil/tests/harness"
)

// With these flags etcd writes its file so rarely that recent changes are only in its log when it is
// killed.
var lazyBackend = []string{"--backend-batch-interval=10m", "--backend-batch-limit=10000000"}

// both starts etcd on a copy of its directory, and Vigil on the imported one.
func both(t *testing.T, source, imported string) *pair {
	t.Helper()
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Dir: source, Fast: true})
	vigil := harness.Start(t, harness.Options{Dir: imported})
	return &pair{t, newContext(t), newClient(t, etcd, "", ""), newClient(t, vigil, "", "")}
}

func TestKilledEtcdIsImportedWithItsWholeHistory(t *testing.T) {
	const keys = 100000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases()
	l.users()
	etcd.Kill()
	imported := filepath.Join(t.TempDir(), "imported")
	s := importInto(t, imported, etcd.Dir)
	if s.Leases+s.LogEntries < leaseCount-1 || s.CompactRevision <= 0 {
		t.Errorf("%+v", s)
	}
	p := both(t, copyDir(t, etcd.Dir), imported)
	p.all(keys)
	p.users()
	p.identity()
}

// The file of an etcd is replaced by the one from before all writes, as if etcd had been killed before it
// wrote its file: the import must find all changes in the log.
func TestEntriesOfTheLogAloneAreImported(t *testing.T) {
	const keys = 3000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(etcd.Dir, "member", "snap", "db")
	before, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	etcd = harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true, Dir: etcd.Dir})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases()
	l.users()
	l.controlled(etcd)
	etcd.Kill()
	if err := os.WriteFile(db, before, 0o600); err != nil {
		t.Fatal(err)
	}
	imported := filepath.Join(t.TempDir(), "imported")
	s := importInto(t, imported, etcd.Dir)
	if s.LogEntries < leaseCount*leasedKeys || s.LogEntriesRefused == 0 || s.Changes != 0 {
		t.Errorf("%+v", s)
	}
	if s.Users != 4 || s.Leases != leaseCount-1 {
		t.Errorf("users or leases of the log are not counted: %+v", s)
	}
	p := both(t, copyDir(t, etcd.Dir), imported)
	p.all(keys)
	p.users()
	p.identity()
}

// Authentication stays enabled, and passwords are unchanged.
func TestControlledEtcdIsImportedAsControlled(t *testing.T) {
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.put(0, 200, 0)
	l.users()
	_, err := l.client.AuthEnable(l.ctx)
	l.must(err)
	etcd.Kill()
	imported := filepath.Join(t.TempDir(), "imported")
	if s := importInto(t, imported, etcd.Dir); !s.AuthEnabled {
		t.Errorf("%+v", s)
	}
	vigil := harness.Start(t, harness.Options{Dir: imported})
	if _, err = newClient(t, vigil, "", "").Get(l.ctx, key(1)); err == nil {
		t.Error("an unauthenticated client may read")
	}
	bob := newClient(t, vigil, "bob", "bob's other password")
	if got, err := bob.Get(l.ctx, key(1)); err != nil || len(got.Kvs) != 1 {
		t.Errorf("bob may not read: %v", err)
	}
	if _, err := bob.Put(l.ctx, key(1), ""); err == nil {
		t.Error("bob may write")
	}
	root := newClient(t, vigil, "root", "root's password")
	if _, err := root.Put(l.ctx, key(1), ""); err != nil {
		t.Errorf("root may not write: %v", err)
	}
}

// The way back: a snapshot of Vigil that etcd's own tool restores is served by a real etcd.
func TestSnapshotOfVigilIsRestoredByEtcd(t *testing.T) {
	const keys = 20000
	vigil := harness.Start(t, harness.Options{})
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	l.history(keys)
	l.leases()
	l.users()
	snapshot := snapshotOf(l)
	dir := filepath.Join(t.TempDir(), "etcd")
	restored, err := exec.Command(etcdutl(), "snapshot", "restore", snapshot, "--data-dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, restored)
	}
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Dir: dir, Fast: true})
	p := &pair{t, l.ctx, newClient(t, etcd, "", ""), l.client}
	p.all(keys)
	p.users()

	// Then that etcd is imported again.
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	importInto(t, again, dir)
	p = both(t, copyDir(t, dir), again)
	p.all(keys)
	p.users()
}

func TestSnapshotOfVigilIsRestoredByVigil(t *testing.T) {
	const keys = 2000
	vigil := harness.Start(t, harness.Options{})
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	l.history(keys)
	l.leases()
	l.users()
	snapshot := snapshotOf(l)
	dir := filepath.Join(t.TempDir(), "restored")
	command(t, "snapshot", "restore", snapshot, "--data-dir", dir)
	restored := harness.Start(t, harness.Options{Dir: dir})
	p := &pair{t, l.ctx, l.client, newClient(t, restored, "", "")}
	p.all(keys)
	p.users()
}

func TestLastEntriesOfTheLogAreImported(t *testing.T) {
	const keys = 2000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true, Args: lazyBackend})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases() // revoking a lease makes etcd write its file
	l.put(0, 500, 9)
	etcd.Kill()
	imported := filepath.Join(t.TempDir(), "imported")
	s := importInto(t, imported, etcd.Dir)
	if s.LogEntries == 0 || s.Changes == 0 {
		t.Errorf("%+v", s)
	}
	both(t, copyDir(t, etcd.Dir), imported).all(keys)
}

func TestStoppedEtcdIsImported(t *testing.T) {
	const keys = 2000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases()
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	imported := filepath.Join(t.TempDir(), "imported")
	importInto(t, imported, etcd.Dir)
	both(t, copyDir(t, etcd.Dir), imported).all(keys)
}
