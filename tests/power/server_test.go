package power

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"vigil/tests/harness"
)

// imageDirs makes images that are left for a server: by directory, the position of the failure.
func (r *recording) imageDirs(t *testing.T, count int, seed int64) map[string]uint64 {
	t.Helper()
	top, err := os.MkdirTemp("/dev/shm", "vigil-power-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	if _, _, err := r.images(count, seed, "--keep", top); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]uint64{}
	for _, name := range names {
		_, position, _ := strings.Cut(name.Name(), "-")
		if dirs[filepath.Join(top, name.Name())], err = strconv.ParseUint(position, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// asRoot adds a token if the power failed while authentication was on.
func asRoot(ctx context.Context, conn *grpc.ClientConn) context.Context {
	answer, err := pb.NewAuthClient(conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "secret"})
	if err != nil {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "token", answer.Token)
}

// checkServer reads all keys through a client and compares them with the history.
func (r *recording) checkServer(server *harness.Server, position uint64, extra map[string]string) (int64, error) {
	conn, err := dial(server.Addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	answer, err := pb.NewKVClient(conn).Range(asRoot(ctx, conn), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		return 0, err
	}
	revision := answer.Header.Revision
	if due := r.history.due(position); revision-int64(len(extra)) < due {
		return 0, fmt.Errorf("revision %d was acknowledged, and the server has %d", due, revision)
	}
	expected := r.history.at(revision - int64(len(extra)))
	for key, value := range extra {
		expected[key] = found{value: value, revision: revision}
	}
	for _, pair := range answer.Kvs {
		key := string(pair.Key)
		if got := (found{string(pair.Value), pair.Lease, pair.ModRevision}); got != expected[key] {
			return 0, fmt.Errorf("%s at revision %d is not as it was put", key, revision)
		}
		delete(expected, key)
	}
	if len(expected) > 0 {
		return 0, fmt.Errorf("%d keys are missing at revision %d", len(expected), revision)
	}
	return revision, nil
}

// serve starts the server on an image, reads, puts, and starts it once more.
func (r *recording) serve(dir string, position uint64) error {
	options := r.options()
	options.Dir, options.Env = dir, nil
	server, err := harness.Launch(harness.Subject(), options)
	if err != nil {
		return err
	}
	defer server.Kill()
	if _, err = r.checkServer(server, position, nil); err != nil {
		return err
	}
	conn, err := dial(server.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	put := &pb.PutRequest{Key: []byte("zz/after"), Value: []byte("the power failed")}
	if _, err := pb.NewKVClient(conn).Put(asRoot(ctx, conn), put); err != nil {
		return err
	}
	if err := server.Stop(); err != nil {
		return err
	}
	again, err := harness.Launch(harness.Subject(), options)
	if err != nil {
		return err
	}
	defer again.Kill()
	_, err = r.checkServer(again, position, map[string]string{"zz/after": "the power failed"})
	return err
}

// failAgain starts the server on an image under the recorder, and makes images of that: the power
// fails again while the server recovers.
func (r *recording) failAgain(t *testing.T, dir string, position uint64, count int, seed int64) (totals, string, error) {
	base := dir + ".base"
	if out, err := exec.Command("cp", "-a", "--sparse=always", dir, base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	second := newRecording(t)
	second.dir, second.history = dir, r.history
	server := second.launch(t)
	if seed%2 == 0 {
		server.Kill()
	} else if err := server.Stop(); err != nil {
		return totals{}, "", err
	}
	return second.images(count, seed, "--base", base, "--position", strconv.FormatUint(position, 10))
}
