// Package migration moves data between a real etcd and Vigil: the data directory of a stopped or killed
// etcd is imported, and Vigil is compared with the etcd that is started on the same directory.
package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"vigil/tests/harness"
)

const (
	testLimit   = 10 * time.Minute
	putsPerTxn  = 100
	leaseTTL    = 100000
	leasedKeys  = 40
	leaseCount  = 5
	valueFormat = "value %d of round %d, which is neither long nor short"
)

func newContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

func newClient(t *testing.T, server *harness.Server, user, password string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.URL}, DialTimeout: 20 * time.Second, Logger: zap.NewNop(),
		Username: user, Password: password,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// loader fills an etcd.
type loader struct {
	*testing.T
	ctx    context.Context
	client *clientv3.Client
}

func (l *loader) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func key(i int) string { return fmt.Sprintf("/registry/things/%06d", i) }

// put writes keys [from, to), a hundred with each transaction.
func (l *loader) put(from, to, round int) {
	l.Helper()
	for from < to {
		var ops []clientv3.Op
		for ; from < to && len(ops) < putsPerTxn; from++ {
			ops = append(ops, clientv3.OpPut(key(from), fmt.Sprintf(valueFormat, from, round)))
		}
		_, err := l.client.Txn(l.ctx).Then(ops...).Commit()
		l.must(err)
	}
}

func (l *loader) compact() int64 {
	l.Helper()
	response, err := l.client.Get(l.ctx, "nothing")
	l.must(err)
	_, err = l.client.Compact(l.ctx, response.Header.Revision, clientv3.WithCompactPhysical())
	l.must(err)
	return response.Header.Revision
}

// history writes keys, changes and deletes some, compacts, and continues.
func (l *loader) history(keys int) {
	l.Helper()
	l.put(0, keys, 0)
	l.put(keys/10, keys/5, 1)
	_, err := l.client.Delete(l.ctx, key(keys/8), clientv3.WithRange(key(keys/7)))
	l.must(err)
	l.put(keys/7, keys/6, 2)
	l.compact()
	l.put(keys/3, keys/3+200, 3)
	_, err = l.client.Delete(l.ctx, key(keys/3+50), clientv3.WithRange(key(keys/3+80)))
	l.must(err)
	for i := range 20 {
		_, err = l.client.Put(l.ctx, "single", fmt.Sprint(i))
		l.must(err)
	}
	_, err = l.client.Txn(l.ctx).If(clientv3.Compare(clientv3.Version("single"), "=", 20)).
		Then(clientv3.OpDelete("single"), clientv3.OpPut("other", "x"),
			clientv3.OpGet("", clientv3.WithPrefix()),
			clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("nested", "y")}, nil)).
		Else(clientv3.OpPut("not this", "z")).Commit()
	l.must(err)
}

func (l *loader) leases() {
	l.Helper()
	for i := range leaseCount {
		lease, err := l.client.Grant(l.ctx, int64(leaseTTL+i))
		l.must(err)
		for k := range leasedKeys {
			_, err = l.client.Put(l.ctx, fmt.Sprintf("leased/%d/%d", i, k), "", clientv3.WithLease(lease.ID))
			l.must(err)
		}
		if i == 0 {
			_, err = l.client.Revoke(l.ctx, lease.ID)
			l.must(err)
		}
	}
}

func (l *loader) users() {
	l.Helper()
	_, err := l.client.RoleAdd(l.ctx, "root")
	l.must(err)
	_, err = l.client.UserAdd(l.ctx, "root", "root's password")
	l.must(err)
	_, err = l.client.UserGrantRole(l.ctx, "root", "root")
	l.must(err)
	_, err = l.client.RoleAdd(l.ctx, "reader")
	l.must(err)
	_, err = l.client.RoleGrantPermission(l.ctx, "reader", "/registry/", "/registry0",
		clientv3.PermissionType(clientv3.PermRead))
	l.must(err)
	for _, name := range []string{"alice", "bob", "carol"} {
		_, err = l.client.UserAdd(l.ctx, name, name+"'s password")
		l.must(err)
		_, err = l.client.UserGrantRole(l.ctx, name, "reader")
		l.must(err)
	}
	_, err = l.client.UserAddWithOptions(l.ctx, "certificate", "", &clientv3.UserAddOptions{NoPassword: true})
	l.must(err)
	_, err = l.client.UserDelete(l.ctx, "carol")
	l.must(err)
	_, err = l.client.UserChangePassword(l.ctx, "bob", "bob's other password")
	l.must(err)
}

// controlled enables authentication, sends requests of a user without permission, and disables it again.
func (l *loader) controlled(etcd *harness.Server) {
	l.Helper()
	_, err := l.client.AuthEnable(l.ctx)
	l.must(err)
	alice := newClient(l.T, etcd, "alice", "alice's password")
	_, err = alice.Put(l.ctx, "/registry/not hers", "x")
	if err == nil {
		l.Fatal("alice may write")
	}
	_, err = alice.Txn(l.ctx).Then(clientv3.OpPut("nor this", "x")).Commit()
	if err == nil {
		l.Fatal("alice may write in a transaction")
	}
	_, err = alice.Get(l.ctx, key(1))
	l.must(err)
	root := newClient(l.T, etcd, "root", "root's password")
	_, err = root.Put(l.ctx, "root was here", "x")
	l.must(err)
	_, err = root.AuthDisable(l.ctx)
	l.must(err)
}

// command runs vigil and returns what it printed on stdout, or fails.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, text, err := tryCommand(args...)
	if err != nil {
		t.Fatalf("vigil %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return out
}

func tryCommand(args ...string) (stdout, stderr string, err error) {
	var out, text strings.Builder
	cmd := exec.Command(harness.Subject(), args...)
	cmd.Stdout, cmd.Stderr = &out, &text
	err = cmd.Run()
	return out.String(), text.String(), err
}

// summary is the output of vigil import --json.
type summary struct {
	Revision          int64
	CompactRevision   int64
	Keys              int64
	Changes           int64
	Leases            int64
	Users             int64
	LogEntries        int64
	LogEntriesRefused int64
	LogTorn           bool
	AuthEnabled       bool
	ClusterID         string
	Bytes             int64
	Seconds           float64
}

func importInto(t *testing.T, dir, source string, args ...string) summary {
	t.Helper()
	var s summary
	out := command(t, append([]string{"import", "--json", "--data-dir", dir, source}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	t.Logf("imported %d changes, %d entries of the log in %.2f s", s.Changes, s.LogEntries, s.Seconds)
	return s
}

// copyDir copies a directory that no server uses.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	// etcd requires private directories.
	err := filepath.Walk(to, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
