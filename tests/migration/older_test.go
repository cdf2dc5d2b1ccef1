package migration

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

const olderKeys = 300

// answers has a server's answers about everything, small enough to be stored in a file.
type answers struct {
	Revision, Compacted int64
	Hashes              map[int64]uint32
	Keys                map[int64][]string
	Events              []string
	Leases              map[string][]string
}

func answersOf(t *testing.T, ctx context.Context, client *clientv3.Client) answers {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hash, err := client.HashKV(ctx, client.Endpoints()[0], 0)
	must(err)
	a := answers{
		Revision: hash.Header.Revision, Compacted: hash.CompactRevision,
		Hashes: map[int64]uint32{0: hash.Hash}, Keys: map[int64][]string{},
		Leases: map[string][]string{},
	}
	for revision := a.Compacted + 1; revision <= a.Revision; revision += 7 {
		hash, err := client.HashKV(ctx, client.Endpoints()[0], revision)
		must(err)
		a.Hashes[revision] = hash.Hash
		if revision%3 == 0 {
			continue
		}
		got, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithKeysOnly())
		must(err)
		for _, kv := range got.Kvs {
			a.Keys[revision] = append(a.Keys[revision], fmt.Sprint(string(kv.Key), kv.CreateRevision, kv.ModRevision, kv.Version))
		}
	}
	p := &pair{T: t, ctx: ctx}
	for _, e := range p.events(client, a.Compacted, a.Compacted+1, a.Revision) {
		a.Events = append(a.Events, fmt.Sprint(e))
	}
	leases, err := client.Leases(ctx)
	must(err)
	for _, lease := range leases.Leases {
		ttl, err := client.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
		must(err)
		texts := []string{}
		for _, key := range ttl.Keys {
			texts = append(texts, string(key))
		}
		slices.Sort(texts)
		a.Leases[fmt.Sprintf("%x %d", lease.ID, ttl.GrantedTTL)] = texts
	}
	return a
}

// Imports data directories of older versions of etcd, and compares Vigil's answers with those that the
// etcd gave. TestMakeOlder made the archives.
func TestOlderEtcdsAreImported(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, archive, dir)
			bytes, err := os.ReadFile(filepath.Join(dir, "answers.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want answers
			if err := json.Unmarshal(bytes, &want); err != nil {
				t.Fatal(err)
			}
			imported := filepath.Join(dir, "imported")
			s := importInto(t, imported, filepath.Join(dir, "etcd"))
			if strings.Contains(archive, "killed") && s.LogEntries == 0 {
				t.Errorf("no entry was only in the log: %+v", s)
			}
			vigil := harness.Start(t, harness.Options{Dir: imported})
			got := answersOf(t, newContext(t), newClient(t, vigil, "", ""))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("Vigil answers\n%.2000v\nand etcd answered\n%.2000v", got, want)
			}
		})
	}
}

func unpack(t *testing.T, archive, to string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(zip); ; {
		head, err := reader.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, head.Name)
		content, err := io.ReadAll(reader)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
