package conformance

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestStatus(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.awaitStorageVersion()
	s, err := f.client.Status(f.ctx, f.server.Addr)
	f.must(err)
	want(f, "revision", s.Header.Revision, 2)
	want(f, "leader", s.Leader, s.Header.MemberId)
	want(f, "minor version", strings.HasPrefix(s.Version, "3.7."), true)
	want(f, "storage version", s.StorageVersion, "3.7.0")
	want(f, "learner", s.IsLearner, false)
	want(f, "errors", len(s.Errors), 0)
	want(f, "sizes", s.DbSize > 0 && s.DbSizeInUse > 0 && s.DbSizeInUse <= s.DbSize, true)
	want(f, "applied", s.RaftAppliedIndex > 0 && s.RaftAppliedIndex <= s.RaftIndex, true)
	if s.RaftTerm < 2 {
		t.Errorf("term %d", s.RaftTerm)
	}
	f.put("a", "2")
	again, err := f.client.Status(f.ctx, f.server.Addr)
	f.must(err)
	want(f, "index grows", again.RaftAppliedIndex > s.RaftAppliedIndex, true)
}

// awaitStorageVersion waits until the storage version is known, which a real etcd determines shortly
// after it begins to serve.
func (f *fixture) awaitStorageVersion() {
	f.Helper()
	for {
		s, err := f.client.Status(f.ctx, f.server.Addr)
		f.must(err)
		if s.StorageVersion == "3.7.0" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestMemberListAndSync(t *testing.T) {
	f := newFixture(t)
	m, err := f.client.MemberList(f.ctx)
	f.must(err)
	want(f, "members", len(m.Members), 1)
	want(f, "name", m.Members[0].Name, "default")
	want(f, "id", m.Members[0].ID, m.Header.MemberId)
	want(f, "client url", strings.Join(m.Members[0].ClientURLs, " "), f.server.URL)
	want(f, "peer urls", len(m.Members[0].PeerURLs), 1)
	_, err = f.client.MemberList(f.ctx, clientv3.WithSerializable())
	f.must(err)
	f.must(f.client.Sync(f.ctx))
	want(f, "endpoints", strings.Join(f.client.Endpoints(), " "), f.server.URL)
	f.put("a", "after the sync")
}

func TestGrpcHealth(t *testing.T) {
	f := newFixture(t)
	health := healthpb.NewHealthClient(f.raw())
	r, err := health.Check(f.ctx, &healthpb.HealthCheckRequest{})
	f.must(err)
	want(f, "status", r.Status, healthpb.HealthCheckResponse_SERVING)
	_, err = health.Check(f.ctx, &healthpb.HealthCheckRequest{Service: "unknown"})
	want(f, "unknown service", status.Code(err), codes.NotFound)
	watch, err := health.Watch(f.ctx, &healthpb.HealthCheckRequest{})
	f.must(err)
	first, err := watch.Recv()
	f.must(err)
	want(f, "watched", first.Status, healthpb.HealthCheckResponse_SERVING)
}

func (f *fixture) http(path string) (int, string, http.Header) {
	f.Helper()
	client := http.Client{Timeout: time.Minute}
	r, err := client.Get(f.server.URL + path)
	f.must(err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	f.must(err)
	return r.StatusCode, string(body), r.Header
}

func TestHttpHealth(t *testing.T) {
	f := newFixture(t)
	code, body, _ := f.http("/health")
	want(f, "code", code, 200)
	want(f, "body", strings.TrimSpace(body), `{"health":"true","reason":""}`)
	for _, path := range []string{"/health?serializable=true", "/health?exclude=NOSPACE"} {
		code, _, _ = f.http(path)
		want(f, path, code, 200)
	}
	r, err := http.Post(f.server.URL+"/health", "text/plain", strings.NewReader("x"))
	f.must(err)
	r.Body.Close()
	want(f, "POST", r.StatusCode, 405)
}

func TestHttpVersion(t *testing.T) {
	f := newFixture(t)
	f.awaitStorageVersion()
	code, body, header := f.http("/version")
	want(f, "code", code, 200)
	want(f, "type", header.Get("Content-Type"), "application/json")
	var version struct{ Etcdserver, Etcdcluster, Storage string }
	f.must(json.Unmarshal([]byte(body), &version))
	want(f, "server", strings.HasPrefix(version.Etcdserver, "3.7."), true)
	want(f, "cluster", version.Etcdcluster, "3.7.0")
	want(f, "storage", version.Storage, "3.7.0")
}

func TestHttpUnknownPath(t *testing.T) {
	f := newFixture(t)
	code, _, _ := f.http("/nothing/here")
	want(f, "code", code, 404)
}

func TestUnknownMethodAndService(t *testing.T) {
	f := newFixture(t)
	for _, method := range []string{"/etcdserverpb.KV/Nothing", "/unknown.Nothing/Here"} {
		err := f.raw().Invoke(f.ctx, method, &pb.RangeRequest{}, &pb.RangeResponse{})
		want(f, method, status.Code(err), codes.Unimplemented)
	}
}

func TestHasleaderMetadataIsAccepted(t *testing.T) {
	f := newFixture(t)
	_, err := f.client.Put(clientv3.WithRequireLeader(f.ctx), "a", "1")
	f.must(err)
	_, err = f.kv().Range(metadata.AppendToOutgoingContext(f.ctx, "client-api-version", "3.7.0"),
		&pb.RangeRequest{Key: []byte("a")})
	f.must(err)
}

func TestManyStreamsOnOneConnection(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	conn := f.raw()
	const streams = 10_000
	kv := pb.NewKVClient(conn)
	errs := make(chan error, streams)
	for range streams {
		go func() {
			_, err := kv.Range(f.ctx, &pb.RangeRequest{Key: []byte("a")})
			errs <- err
		}()
	}
	for range streams {
		f.must(<-errs)
	}
}

func TestClientWithKeepaliveStaysConnected(t *testing.T) {
	f := newFixture(t)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{f.server.URL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 100 * time.Millisecond,
		DialOptions: []grpc.DialOption{grpc.WithUserAgent("conformance")},
	})
	f.must(err)
	defer client.Close()
	_, err = client.Put(f.ctx, "a", "1")
	f.must(err)
}
