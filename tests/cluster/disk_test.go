package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// smallDisk mounts a file system of a size.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// The disk of the front is full while it makes its mirror: it waits for space, and then continues with
// the state that it has read.
func TestMirrorWaitsForSpace(t *testing.T) {
	if testing.Short() || !harness.IsVigil() {
		t.Skip("needs a disk of its own")
	}
	const keys, diskMiB, hogMiB = 40, 120, 52
	c := harness.StartCluster(t, harness.ClusterOptions{Size: 1})
	f := &fixture{T: t, cluster: c}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	disk := smallDisk(t, diskMiB)
	f.front = harness.NewFront(c, harness.FrontOptions{Dir: filepath.Join(disk, "mirror")})
	f.direct = f.client(c.Members[0].URL)
	value := strings.Repeat("v", 1<<20)
	for i := range keys {
		f.put(f.direct, fmt.Sprintf("k%d", i), value)
	}
	hog := filepath.Join(disk, "hog")
	f.must(os.WriteFile(hog, make([]byte, hogMiB<<20), 0o600))
	f.front.Begin()
	f.eventually("the full disk", func() bool { return strings.Contains(f.front.Log(), "no space left") })
	f.must(os.Remove(hog))
	f.via = f.client(f.front.URL)
	f.awaitSync(f.via)
	answer, err := f.via.Get(f.ctx, "k", clientv3.WithPrefix(), clientv3.WithSerializable(), clientv3.WithCountOnly())
	f.must(err)
	if answer.Count != keys {
		t.Errorf("%d keys instead of %d", answer.Count, keys)
	}
	if strings.Contains(f.front.Log(), "again from nothing") {
		t.Errorf("the mirror was discarded:\n%s", f.front.Log())
	}
}
