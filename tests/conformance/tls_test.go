package conformance

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"vigil/tests/harness"
)

func newTLSFixture(t *testing.T, a *harness.Authority, config *tls.Config, args ...string) *fixture {
	t.Helper()
	a.Issue("server")
	args = append([]string{"--cert-file", a.Path("server.pem"), "--key-file", a.Path("server.key")}, args...)
	server := harness.Start(t, harness.Options{TLS: true, Args: args})
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	return &fixture{t, server, dialTLS(t, server, config), ctx}
}

func dialTLS(t *testing.T, server *harness.Server, config *tls.Config) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.URL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), TLS: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestClientOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			a := harness.NewAuthority(t)
			config := a.Config(nil)
			config.MinVersion, config.MaxVersion = version, version
			f := newTLSFixture(t, a, config)
			watch := f.client.Watch(f.ctx, "k", clientv3.WithPrefix())
			large := strings.Repeat("0123456789abcdef", 64<<10/16)
			for i := range 50 {
				f.put("k"+string(rune('a'+i%26)), large[:i*1000])
			}
			want(f, "keys", f.get("k", clientv3.WithPrefix()).Count, 26)
			for seen := 0; seen < 50; {
				response := <-watch
				f.must(response.Err())
				seen += len(response.Events)
			}
		})
	}
}

func TestClientCertificateIsRequired(t *testing.T) {
	t.Parallel()
	a := harness.NewAuthority(t)
	alice := a.Issue("alice")
	f := newTLSFixture(t, a, a.Config(&alice), "--trusted-ca-file", a.Path("ca.pem"), "--client-cert-auth")
	f.put("a", "1")
	ctx, cancel := context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	if _, err := dialTLS(t, f.server, a.Config(nil)).Get(ctx, "a"); err == nil {
		t.Error("a client without a certificate was accepted")
	}
	unknown := harness.NewAuthority(t).Issue("mallory")
	ctx, cancel = context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	if _, err := dialTLS(t, f.server, a.Config(&unknown)).Get(ctx, "a"); err == nil {
		t.Error("a client of another authority was accepted")
	}
	f.put("a", "2")
}

// Writers and a watch continue, and new clients trust only the new authority.
func TestCertificatesRotateUnderLoad(t *testing.T) {
	t.Parallel()
	a := harness.NewAuthority(t)
	f := newTLSFixture(t, a, a.Config(nil))
	watch := f.client.Watch(f.ctx, "k", clientv3.WithPrefix())
	stop := make(chan struct{})
	var writers sync.WaitGroup
	counts := make([]int, 4)
	for i := range counts {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := f.client.Put(f.ctx, "k"+string(rune('0'+i)), "v"); err != nil {
					t.Error(err)
					return
				}
				counts[i]++
			}
		}()
	}
	for range 5 {
		next := harness.NewAuthority(t)
		next.Issue("server")
		for _, name := range []string{"server.pem", "server.key"} {
			f.must(os.Rename(next.Path(name), a.Path(name)))
		}
		client := dialTLS(t, f.server, next.Config(nil))
		_, err := client.Put(f.ctx, "other", "v")
		f.must(err)
		f.must(client.Close())
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	writers.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		t.Fatal("nothing was written")
	}
	for seen := 0; seen < total; {
		response := <-watch
		f.must(response.Err())
		seen += len(response.Events)
	}
}

func TestClientReconnectsOverTLS(t *testing.T) {
	t.Parallel()
	a := harness.NewAuthority(t)
	f := newTLSFixture(t, a, a.Config(nil))
	f.put("a", "1")
	watch := f.client.Watch(f.ctx, "a")
	f.must(f.server.Stop())
	harness.Start(t, f.server.Options)
	_, err := f.client.Put(f.ctx, "a", "2")
	for err != nil && f.ctx.Err() == nil {
		_, err = f.client.Put(f.ctx, "a", "2")
	}
	f.must(err)
	for value := ""; value != "2"; { // the client requests the revision again at which it began
		response := <-watch
		f.must(response.Err())
		for _, event := range response.Events {
			value = string(event.Kv.Value)
		}
	}
}
