//go:build older

package migration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vigil/tests/harness"
)

// Makes the archives that TestOlderEtcdsAreImported reads:
// VIGIL_OLDER=/path/to/etcd VIGIL_OLDER_NAME=etcd-3.4.23 go test -tags older ./migration -run MakeOlder
func TestMakeOlder(t *testing.T) {
	binary, name := os.Getenv("VIGIL_OLDER"), os.Getenv("VIGIL_OLDER_NAME")
	for _, how := range []string{"stopped", "killed"} {
		etcd := harness.StartBinary(t, binary, harness.Options{Args: lazyBackend})
		l := &loader{t, newContext(t), newClient(t, etcd, "", "")}
		l.history(olderKeys)
		l.users()
		l.leases()
		l.put(0, 50, 9)
		recorded := answersOf(t, l.ctx, l.client)
		if how == "killed" {
			etcd.Kill()
		} else if err := etcd.Stop(); err != nil {
			t.Fatal(err)
		}
		pack(t, filepath.Join("testdata", name+"-"+how+".tar.gz"), etcd.Dir, recorded)
	}
}

// pack omits the zeros that etcd preallocates after its log.
func pack(t *testing.T, archive, dir string, recorded answers) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Dir(archive), 0o755))
	file, err := os.Create(archive)
	must(err)
	zip := gzip.NewWriter(file)
	writer := tar.NewWriter(zip)
	add := func(name string, content []byte) {
		must(writer.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}))
		_, err := writer.Write(content)
		must(err)
	}
	text, err := json.Marshal(recorded)
	must(err)
	add("answers.json", text)
	must(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".tmp") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".wal") {
			used := len(bytes.TrimRight(content, "\x00"))
			content = content[:min(len(content), used+4096)]
		}
		name, err := filepath.Rel(dir, path)
		add(filepath.Join("etcd", name), content)
		return err
	}))
	must(writer.Close())
	must(zip.Close())
	must(file.Close())
}
