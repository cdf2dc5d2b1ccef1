package conformance

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"vigil/tests/harness"
)

// easy makes hashing passwords fast, because clients log in often here.
var easy = []string{"--bcrypt-cost", "4"}

// users adds root, and anna, who may read and write everything below a/, and enables authentication.
func (f *fixture) users() {
	f.Helper()
	ok := func(_ any, err error) { f.Helper(); f.must(err) }
	ok(f.client.UserAdd(f.ctx, "root", "rootpw"))
	ok(f.client.UserGrantRole(f.ctx, "root", "root"))
	ok(f.client.UserAdd(f.ctx, "anna", "annapw"))
	ok(f.client.RoleAdd(f.ctx, "writer"))
	ok(f.client.RoleGrantPermission(f.ctx, "writer", "a/", "a0", clientv3.PermissionType(clientv3.PermReadWrite)))
	ok(f.client.UserGrantRole(f.ctx, "anna", "writer"))
	ok(f.client.AuthEnable(f.ctx))
}

// as returns a fixture of the same server for another user.
func (f *fixture) as(name, password string, config *tls.Config) *fixture {
	f.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{f.server.URL}, DialTimeout: time.Minute, Logger: zap.NewNop(),
		Username: name, Password: password, TLS: config,
	})
	f.must(err)
	f.Cleanup(func() { client.Close() })
	return &fixture{f.T, f.server, client, f.ctx}
}

func newAuthFixture(t *testing.T, args ...string) (f, root, anna *fixture) {
	t.Helper()
	f = newFixture(t, append(easy, args...)...)
	f.users()
	return f, f.as("root", "rootpw", nil), f.as("anna", "annapw", nil)
}

func TestAuthRights(t *testing.T) {
	f, root, anna := newAuthFixture(t)
	_, err := f.client.Get(f.ctx, "a/1")
	f.wantError(err, rpctypes.ErrUserEmpty)
	root.put("a/1", "r")
	root.put("b", "r")
	want(f, "own keys", anna.get("a/", clientv3.WithPrefix()).Count, 1)
	anna.put("a/2", "x")
	for name, op := range map[string]clientv3.Op{
		"get":      clientv3.OpGet("b"),
		"all":      clientv3.OpGet("a/", clientv3.WithFromKey()),
		"put":      clientv3.OpPut("b", "x"),
		"delete":   clientv3.OpDelete("a", clientv3.WithPrefix()),
		"compare":  clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("b"), "=", "r")}, nil, nil),
		"branch":   clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("a/1", "x")}, []clientv3.Op{clientv3.OpGet("b")}),
		"nested":   clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("b", "x")}, nil)}, nil),
		"previous": clientv3.OpDelete("b", clientv3.WithPrevKV()),
	} {
		if _, err := anna.client.Do(f.ctx, op); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = clientv3.New(clientv3.Config{Endpoints: []string{f.server.URL}, Logger: zap.NewNop(),
		DialTimeout: time.Minute, Username: "anna", Password: "wrong"})
	f.wantError(err, rpctypes.ErrAuthFailed)
}

// login returns a context with a new token.
func (f *fixture) login(name, password string) context.Context {
	f.Helper()
	r, err := pb.NewAuthClient(f.raw()).Authenticate(f.ctx, &pb.AuthenticateRequest{Name: name, Password: password})
	f.must(err)
	return metadata.AppendToOutgoingContext(f.ctx, "token", r.Token)
}

func TestAuthClientLogsInAgainAfterItsTokenExpires(t *testing.T) {
	f, root, anna := newAuthFixture(t, "--auth-token-ttl", "4")
	other := f.login("anna", "annapw")
	_, err := f.kv().Put(other, &pb.PutRequest{Key: []byte("a/1")})
	f.must(err)
	anna.put("a/1", "1")
	time.Sleep(6500 * time.Millisecond) // the TTL, and the two seconds of etcd's check interval
	_, err = f.kv().Put(other, &pb.PutRequest{Key: []byte("a/1")})
	f.wantError(err, rpctypes.ErrGRPCInvalidAuthToken)
	anna.put("a/1", "2")
	// A change of the password ends the token at once.
	other = f.login("anna", "annapw")
	_, err = root.client.UserChangePassword(f.ctx, "anna", "new")
	f.must(err)
	_, err = f.kv().Put(other, &pb.PutRequest{Key: []byte("a/1")})
	f.wantError(err, rpctypes.ErrGRPCInvalidAuthToken)
	_, err = anna.client.Put(f.ctx, "a/1", "3")
	f.wantError(err, rpctypes.ErrAuthFailed)
	f.as("anna", "new", nil).put("a/1", "4")
}

func TestAuthClientContinuesAfterARestart(t *testing.T) {
	f, _, anna := newAuthFixture(t)
	anna.put("a/1", "1")
	f.server.Kill()
	_, port, err := net.SplitHostPort(f.server.Addr)
	f.must(err)
	again := f.server.Options
	again.Dir = f.server.Dir
	again.Port, err = strconv.Atoi(port)
	f.must(err)
	harness.Start(t, again)
	anna.put("a/1", "2")
}

func webToken(t *testing.T, ttl string) []string {
	a := harness.NewAuthority(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	a.Write("token.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	a.Write("token.pub", "PUBLIC KEY", public)
	return []string{"--auth-token", fmt.Sprintf("jwt,pub-key=%s,priv-key=%s,sign-method=RS256,ttl=%s",
		a.Path("token.pub"), a.Path("token.key"), ttl)}
}

func TestAuthWebTokens(t *testing.T) {
	f, root, anna := newAuthFixture(t, webToken(t, "5s")...)
	other := f.login("anna", "annapw")
	anna.put("a/1", "1")
	_, err := root.client.RoleAdd(f.ctx, "other")
	f.must(err)
	_, err = f.kv().Put(other, &pb.PutRequest{Key: []byte("a/1")})
	f.wantError(err, rpctypes.ErrGRPCAuthOldRevision)
	anna.put("a/1", "2") // the client logs in again
	time.Sleep(6 * time.Second)
	_, err = f.kv().Put(other, &pb.PutRequest{Key: []byte("a/1")})
	f.wantError(err, rpctypes.ErrGRPCInvalidAuthToken)
	anna.put("a/1", "3")
}

func (f *fixture) next(watch clientv3.WatchChan) *clientv3.WatchResponse {
	f.Helper()
	select {
	case response, open := <-watch:
		if !open {
			f.Fatal("the watch has ended")
		}
		return &response
	case <-f.ctx.Done():
		f.Fatal("no response in time")
	}
	panic("not reached")
}

// wantRefused expects the text of a gRPC error as the reason of a refused watch.
func (f *fixture) wantRefused(watch clientv3.WatchChan, why error) {
	f.Helper()
	want(f, "reason", fmt.Sprint(f.next(watch).Err()), why.Error())
}

func TestAuthWatch(t *testing.T) {
	harness.OnlyAlone(t, "checks of running watches keep a token alive")
	f, root, anna := newAuthFixture(t, "--auth-token-ttl", "4")
	anna.wantRefused(anna.client.Watch(f.ctx, "b"), rpctypes.ErrGRPCPermissionDenied)
	anna.wantRefused(anna.client.Watch(f.ctx, "a/", clientv3.WithFromKey()), rpctypes.ErrGRPCPermissionDenied)
	watch := anna.client.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	f.must(anna.next(watch).Err())
	root.put("b", "1")
	root.put("a/1", "1")
	want(f, "events", len(anna.next(watch).Events), 1)
	time.Sleep(6500 * time.Millisecond)
	root.put("a/1", "2") // the watch does not end with its token
	want(f, "events", len(anna.next(watch).Events), 1)
	// A new watch with an expired token is refused; other calls make the client log in again.
	anna.wantRefused(anna.client.Watch(f.ctx, "a/1"), rpctypes.ErrGRPCInvalidAuthToken)
	anna.get("a/1")
	watch = anna.client.Watch(clientv3.WithRequireLeader(f.ctx), "a/1", clientv3.WithCreatedNotify())
	f.must(anna.next(watch).Err())
	root.put("a/1", "3")
	want(f, "events", len(anna.next(watch).Events), 1)
}

func TestAuthWatchEndsWhenItsPermissionIsRevoked(t *testing.T) {
	harness.OnlyAlone(t, "a right that was taken back may be used for another second")
	if harness.IsEtcd(harness.Subject()) {
		t.Skip("etcd checks permissions only when a watch is created")
	}
	for name, take := range map[string]func(root *fixture) error{
		"permission": func(root *fixture) error {
			_, err := root.client.RoleRevokePermission(root.ctx, "writer", "a/", "a0")
			return err
		},
		"role": func(root *fixture) error {
			_, err := root.client.UserRevokeRole(root.ctx, "anna", "writer")
			return err
		},
		"user": func(root *fixture) error {
			_, err := root.client.UserDelete(root.ctx, "anna")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, root, anna := newAuthFixture(t)
			watch := anna.client.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
			f.must(anna.next(watch).Err())
			f.must(take(root))
			root.put("a/secret", "1")
			// The client does not report the reason; nothing comes before the end.
			select {
			case response, open := <-watch:
				if open {
					t.Errorf("the watch received %v", response)
				}
			case <-f.ctx.Done():
				t.Error("the watch has not ended")
			}
		})
	}
}

func TestAuthLeases(t *testing.T) {
	f, root, anna := newAuthFixture(t)
	_, err := f.client.Grant(f.ctx, 60)
	f.wantError(err, rpctypes.ErrUserEmpty)
	lease, err := anna.client.Grant(f.ctx, 60)
	f.must(err)
	anna.put("a/1", "x", clientv3.WithLease(lease.ID))
	_, err = anna.client.KeepAliveOnce(f.ctx, lease.ID)
	f.must(err)
	root.put("b", "x", clientv3.WithLease(lease.ID))
	_, err = anna.client.KeepAliveOnce(f.ctx, lease.ID)
	f.wantError(err, rpctypes.ErrPermissionDenied)
	_, err = anna.client.Revoke(f.ctx, lease.ID)
	f.wantError(err, rpctypes.ErrPermissionDenied)
	_, err = anna.client.Put(f.ctx, "a/2", "x", clientv3.WithLease(lease.ID))
	f.wantError(err, rpctypes.ErrPermissionDenied)
	_, err = anna.client.TimeToLive(f.ctx, lease.ID)
	f.must(err)
	_, err = anna.client.TimeToLive(f.ctx, lease.ID, clientv3.WithAttachedKeys())
	f.wantError(err, rpctypes.ErrPermissionDenied)
	_, err = anna.client.Leases(f.ctx)
	f.wantError(err, rpctypes.ErrPermissionDenied)
	_, err = root.client.Revoke(f.ctx, lease.ID)
	f.must(err)
	want(f, "keys", root.get("", clientv3.WithPrefix()).Count, 0)
	// A session renews its lease and uses it for locks.
	session, err := concurrency.NewSession(anna.client, concurrency.WithTTL(60))
	f.must(err)
	defer session.Close()
	mutex := concurrency.NewMutex(session, "a/lock")
	f.must(mutex.Lock(f.ctx))
	f.must(mutex.Unlock(f.ctx))
	f.wantError(concurrency.NewMutex(session, "lock").Lock(f.ctx), rpctypes.ErrPermissionDenied)
}

func TestAuthUserOfACertificate(t *testing.T) {
	harness.OnlyAlone(t, "the name in a certificate cannot be passed on")
	t.Parallel()
	a := harness.NewAuthority(t)
	root, anna, server := a.Issue("root"), a.Issue("anna"), append(easy, "--trusted-ca-file", a.Path("ca.pem"), "--client-cert-auth")
	f := newTLSFixture(t, a, a.Config(&root), server...)
	f.users()
	f.put("b", "1")
	other := f.as("", "", a.Config(&anna))
	other.put("a/1", "1")
	_, err := other.client.Put(f.ctx, "b", "1")
	f.wantError(err, rpctypes.ErrPermissionDenied)
	other.wantRefused(other.client.Watch(f.ctx, "b"), rpctypes.ErrGRPCPermissionDenied)
	// A login takes precedence over the certificate.
	f.as("root", "rootpw", a.Config(&anna)).put("b", "2")
}
