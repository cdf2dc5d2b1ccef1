package migration

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// tools are the programs of one version of etcd: one that saves a snapshot, one that reads and restores
// it, and the etcd that is started on it.
type tools struct {
	name           string
	ctl, utl, etcd string
	etcdIsOld      bool
}

func allTools(t *testing.T) []tools {
	t.Helper()
	peer := filepath.Dir(harness.Peer())
	all := []tools{
		{"3.7", filepath.Join(peer, "etcdctl"), filepath.Join(peer, "etcdutl"), harness.Peer(), false},
		{"3.4", "/usr/bin/etcdctl", "/usr/bin/etcdctl", "/usr/bin/etcd", true},
	}
	for _, tool := range all {
		for _, path := range []string{tool.ctl, tool.utl, tool.etcd} {
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("%v: tools/install-deps and tools/build-peer install it", err)
			}
		}
	}
	return all
}

// tryTool runs one of etcd's tools, with a timeout because they may retry forever.
func tryTool(t *testing.T, path string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(newContext(t), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	var out, text strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &text
	err = cmd.Run()
	return out.String(), text.String(), err
}

func runTool(t *testing.T, path string, args ...string) string {
	t.Helper()
	out, text, err := tryTool(t, path, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", path, strings.Join(args, " "), err, out, text)
	}
	return out
}

// save returns the file, which the tool has verified.
func (tool *tools) save(t *testing.T, server *harness.Server, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "saved.db")
	runTool(t, tool.ctl, append(flags, "--endpoints="+server.URL, "snapshot", "save", file)...)
	return file
}

type fileStatus struct {
	Revision  int64
	TotalKey  int64
	TotalSize int64
	Version   string
}

func (tool *tools) status(t *testing.T, file string) fileStatus {
	t.Helper()
	var status fileStatus
	out := runTool(t, tool.utl, "snapshot", "status", file, "-w", "json")
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return status
}

// restore starts the tools' etcd on the file.
func (tool *tools) restore(t *testing.T, file string) *harness.Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	runTool(t, tool.utl, "snapshot", "restore", file, "--data-dir", dir)
	return harness.StartBinary(t, tool.etcd, harness.Options{Dir: dir, Fast: !tool.etcdIsOld})
}

// checkPages makes bbolt check every page.
func checkPages(t *testing.T, file string) {
	t.Helper()
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// load writes all kinds of data, with a value that is longer than many pages.
func load(t *testing.T, vigil *harness.Server, keys int) *loader {
	t.Helper()
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	l.history(keys)
	_, err := l.client.Put(l.ctx, "long", strings.Repeat("long value ", 100000))
	l.must(err)
	l.leases()
	l.users()
	return l
}

func TestSnapshotOfVigilIsServedByEtcd(t *testing.T) {
	const keys = 3000
	vigil := harness.Start(t, harness.Options{})
	client := load(t, vigil, keys).client
	for _, tool := range allTools(t) {
		t.Run(tool.name, func(t *testing.T) {
			file := tool.save(t, vigil)
			checkPages(t, file)
			status := tool.status(t, file)
			etcd := tool.restore(t, file)
			p := &pair{t, newContext(t), newClient(t, etcd, "", ""), client}
			newest := p.everything()
			if status.Revision != newest {
				t.Errorf("status has revision %d, etcd %d", status.Revision, newest)
			}
			p.all(keys)
			if !tool.etcdIsOld { // etcd 3.4 does not have all of these calls
				p.users()
			}
			// The etcd continues at the next revision.
			after, err := p.etcd.Put(p.ctx, key(1), "after")
			p.must(err)
			if after.Header.Revision != newest+1 {
				t.Errorf("the next revision is %d after %d", after.Header.Revision, newest)
			}
		})
	}
}

// A snapshot of an empty store has revision 1 and no keys.
func TestSnapshotOfAnEmptyVigilIsServedByEtcd(t *testing.T) {
	vigil := harness.Start(t, harness.Options{})
	for _, tool := range allTools(t) {
		t.Run(tool.name, func(t *testing.T) {
			file := tool.save(t, vigil)
			checkPages(t, file)
			p := &pair{t, newContext(t), newClient(t, tool.restore(t, file), "", ""),
				newClient(t, vigil, "", "")}
			if newest := p.everything(); newest != 1 {
				t.Errorf("revision %d", newest)
			}
			p.hash(0)
		})
	}
}

func TestUsersOfTheSnapshotKeepTheirRights(t *testing.T) {
	vigil := harness.Start(t, harness.Options{})
	l := load(t, vigil, 100)
	_, err := l.client.AuthEnable(l.ctx)
	l.must(err)
	for _, tool := range allTools(t) {
		t.Run(tool.name, func(t *testing.T) {
			ctx := newContext(t)
			_, text, err := tryTool(t, tool.ctl, "--user=alice:alice's password",
				"--endpoints="+vigil.URL, "snapshot", "save", filepath.Join(t.TempDir(), "not hers"))
			if err == nil || !strings.Contains(text, "permission denied") {
				t.Errorf("alice saves a snapshot: %v\n%s", err, text)
			}
			etcd := tool.restore(t, tool.save(t, vigil, "--user=root:root's password"))
			if _, err := newClient(t, etcd, "", "").Get(ctx, key(1)); err == nil {
				t.Error("an unauthenticated client may read")
			}
			alice := newClient(t, etcd, "alice", "alice's password")
			got, err := alice.Get(ctx, key(1))
			if err != nil || len(got.Kvs) != 1 {
				t.Errorf("alice reads %v, %v", got, err)
			}
			if _, err := alice.Put(ctx, key(1), "x"); err == nil {
				t.Error("alice may write")
			}
			if _, err := newClient(t, etcd, "bob", "bob's other password").Get(ctx, key(1)); err != nil {
				t.Error(err)
			}
			p := &pair{t, ctx, newClient(t, etcd, "root", "root's password"),
				newClient(t, vigil, "root", "root's password")}
			p.everything()
			if !tool.etcdIsOld {
				p.users()
			}
		})
	}
}

// A snapshot of Vigil is imported into Vigil again.
func TestSnapshotOfVigilIsImported(t *testing.T) {
	const keys = 1000
	vigil := harness.Start(t, harness.Options{})
	client := load(t, vigil, keys).client
	tool := allTools(t)[0]
	imported := filepath.Join(t.TempDir(), "imported")
	importInto(t, imported, tool.save(t, vigil))
	again := harness.Start(t, harness.Options{Dir: imported})
	p := &pair{t, newContext(t), newClient(t, again, "", ""), client}
	p.all(keys)
	p.users()
}

// A snapshot during writes and compactions has the state of one revision.
func TestSnapshotDuringWritesHasOneRevision(t *testing.T) {
	const keys = 3000
	vigil := harness.Start(t, harness.Options{})
	l := load(t, vigil, keys)
	ctx, cancel := context.WithCancel(l.ctx)
	done := make(chan error, 1)
	go func() { // two keys that are always changed together
		for i := 0; ctx.Err() == nil; i++ {
			value := strings.Repeat("x", i%5000)
			response, err := l.client.Txn(ctx).Then(clientv3.OpPut("one", value),
				clientv3.OpPut("two", value)).Commit()
			if err == nil && i%50 == 49 {
				_, err = l.client.Compact(ctx, response.Header.Revision)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- ctx.Err()
	}()
	tool := allTools(t)[0]
	for range 5 {
		file := tool.save(t, vigil)
		checkPages(t, file)
		etcd := newClient(t, tool.restore(t, file), "", "")
		var values []string
		for _, name := range []string{"one", "two"} {
			got, err := etcd.Get(l.ctx, name)
			l.must(err)
			for _, kv := range got.Kvs {
				values = append(values, string(kv.Value))
			}
		}
		if len(values) == 2 && values[0] != values[1] {
			t.Errorf("one has %d bytes, the other %d", len(values[0]), len(values[1]))
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// readSome reads this many bytes.
func readSome(t *testing.T, reader io.Reader, bytes int) {
	t.Helper()
	if _, err := io.ReadFull(reader, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedSnapshotIsAnError(t *testing.T) {
	vigil := harness.Start(t, harness.Options{})
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	for i := range 40 {
		_, err := l.client.Put(l.ctx, key(i), strings.Repeat("x", 1<<20))
		l.must(err)
	}
	reader, err := l.client.Snapshot(l.ctx)
	l.must(err)
	readSome(t, reader, 1<<20)
	vigil.Kill()
	rest, err := io.Copy(io.Discard, reader)
	if err == nil {
		t.Errorf("%d bytes more, and no error", rest)
	}
}

// A client that stops reading does not keep the server from stopping cleanly, and gets an error.
func TestServerStopsDespiteAStoppedReader(t *testing.T) {
	vigil := harness.Start(t, harness.Options{Args: []string{"--shutdown-timeout=1s"}})
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	for i := range 40 {
		_, err := l.client.Put(l.ctx, key(i), strings.Repeat("x", 1<<20))
		l.must(err)
	}
	reader, err := l.client.Snapshot(l.ctx)
	l.must(err)
	readSome(t, reader, 1<<20)
	l.must(vigil.Stop())
	if _, err := io.Copy(io.Discard, reader); err == nil {
		t.Error("the snapshot ended without an error")
	}
}

// A client that cancels a snapshot in the middle blocks nothing.
func TestCanceledSnapshotsBlockNothing(t *testing.T) {
	vigil := harness.Start(t, harness.Options{})
	l := &loader{t, newContext(t), newClient(t, vigil, "", "")}
	for i := range 20 {
		_, err := l.client.Put(l.ctx, key(i), strings.Repeat("x", 1<<20))
		l.must(err)
	}
	for range 20 { // more than the limit of concurrent snapshots
		ctx, cancel := context.WithCancel(l.ctx)
		deadline := time.Now().Add(testLimit)
		for {
			reader, err := l.client.Snapshot(ctx)
			l.must(err)
			if _, err = io.ReadFull(reader, make([]byte, 1<<20)); err == nil {
				break
			}
			if time.Now().After(deadline) { // earlier ones may not have ended yet
				t.Fatal(err)
			}
		}
		cancel()
	}
	reader, err := l.client.Snapshot(l.ctx)
	l.must(err)
	sum, last := sha256.New(), make([]byte, sha256.Size)
	body, err := io.ReadAll(reader)
	l.must(err)
	cut := len(body) - sha256.Size
	sum.Write(body[:cut])
	copy(last, body[cut:])
	if string(sum.Sum(nil)) != string(last) {
		t.Error("the digest is wrong")
	}
}
