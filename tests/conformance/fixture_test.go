// Package conformance uses the official Go client as users of etcd do, and expects the answers of a
// real etcd. VIGIL_BIN=build/peer/etcd verifies the expectations on a real etcd.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"vigil/tests/harness"
)

const testLimit = 2 * time.Minute

// fixture is one empty server and one client of it.
type fixture struct {
	*testing.T
	server *harness.Server
	client *clientv3.Client
	ctx    context.Context
}

func newFixture(t *testing.T, args ...string) *fixture {
	t.Helper()
	t.Parallel()
	return fixtureOn(t, harness.Start(t, harness.Options{Args: args}))
}

func fixtureOn(t *testing.T, server *harness.Server) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.URL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &fixture{t, server, client, ctx}
}

// raw is a connection without clientv3's checks and retries, for requests it would not send.
func (f *fixture) raw() *grpc.ClientConn {
	f.Helper()
	conn, err := grpc.NewClient("passthrough:///"+f.server.Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	f.must(err)
	f.Cleanup(func() { conn.Close() })
	return conn
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wantError compares an error with one of rpctypes' values: same code, same text.
func (f *fixture) wantError(err, want error) {
	f.Helper()
	if errors.Is(err, want) {
		return
	}
	if err == nil || status.Convert(err).Proto().String() != status.Convert(want).Proto().String() {
		f.Errorf("error is %v, want %v", err, want)
	}
}

func want[V comparable](f *fixture, what string, got, want V) {
	f.Helper()
	if got != want {
		f.Errorf("%s is %v, want %v", what, got, want)
	}
}

func (f *fixture) put(key, value string, opts ...clientv3.OpOption) *clientv3.PutResponse {
	f.Helper()
	r, err := f.client.Put(f.ctx, key, value, opts...)
	f.must(err)
	return r
}

func (f *fixture) get(key string, opts ...clientv3.OpOption) *clientv3.GetResponse {
	f.Helper()
	r, err := f.client.Get(f.ctx, key, opts...)
	f.must(err)
	return r
}

func (f *fixture) delete(key string, opts ...clientv3.OpOption) *clientv3.DeleteResponse {
	f.Helper()
	r, err := f.client.Delete(f.ctx, key, opts...)
	f.must(err)
	return r
}

func (f *fixture) compact(revision int64) {
	f.Helper()
	_, err := f.client.Compact(f.ctx, revision, clientv3.WithCompactPhysical())
	f.must(err)
}

func (f *fixture) revision() int64 {
	f.Helper()
	return f.get("x").Header.Revision
}

// wantKeys compares the keys of an answer with a list like "a b c".
func (f *fixture) wantKeys(kvs []*mvccpb.KeyValue, list string) {
	f.Helper()
	var keys []string
	for _, kv := range kvs {
		keys = append(keys, string(kv.Key))
	}
	if !slices.Equal(keys, strings.Fields(list)) {
		f.Errorf("keys are %q, want %q", keys, strings.Fields(list))
	}
}

// wantKV compares a key with "key=value create/mod/version".
func (f *fixture) wantKV(kv *mvccpb.KeyValue, text string) {
	f.Helper()
	got := "none"
	if kv != nil {
		got = fmt.Sprintf("%s=%s %d/%d/%d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version)
	}
	if got != text {
		f.Errorf("key is %q, want %q", got, text)
	}
}

func (f *fixture) kv() pb.KVClient { return pb.NewKVClient(f.raw()) }
