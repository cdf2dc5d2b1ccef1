package migration

import (
	"os"
	"path/filepath"
	"testing"

	"vigil/tests/harness"
)

// What an etcd writes to its file seldom enough stands in its log alone when it is killed.
var lazyBackend = []string{"--backend-batch-interval=10m", "--backend-batch-limit=10000000"}

// both starts etcd on a copy of the directory, and Vigil on what it has imported.
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
	both(t, copyDir(t, etcd.Dir), imported).all(keys)
}

// The file of an etcd is put back to how it was before anything was written: a start must find all of
// it in the log, as after a kill that came before the file was written.
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
	both(t, copyDir(t, etcd.Dir), imported).all(keys)
}

func TestLastEntriesOfTheLogAreImported(t *testing.T) {
	const keys = 2000
	etcd := harness.StartBinary(t, harness.Peer(), harness.Options{Fast: true, Args: lazyBackend})
	l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
	l.history(keys)
	l.leases() // revoking one makes etcd write its file
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
