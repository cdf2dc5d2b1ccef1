package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"vigil/tests/harness"
)

// authority signs certificates for a test's servers and clients.
type authority struct {
	*testing.T
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func (a *authority) make(template *x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	if signer == nil {
		parent, signer = template, key
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return cert, key
}

func newAuthority(t *testing.T) *authority {
	a := &authority{T: t, dir: t.TempDir()}
	a.cert, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// write replaces a file atomically, as certificate managers do.
func (a *authority) write(name, kind string, der []byte) {
	a.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.path(name+".new"), text, 0o600); err != nil {
		a.Fatal(err)
	}
	if err := os.Rename(a.path(name+".new"), a.path(name)); err != nil {
		a.Fatal(err)
	}
}

// issue signs a certificate for clients and servers, and writes it to name.pem and name.key.
func (a *authority) issue(name string) tls.Certificate {
	a.Helper()
	cert, key := a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", cert.Raw)
	a.write(name+".key", "PRIVATE KEY", der)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) config(client *tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool}
	if client != nil {
		config.Certificates = []tls.Certificate{*client}
	}
	return config
}

func newTLSFixture(t *testing.T, a *authority, config *tls.Config, args ...string) *fixture {
	t.Helper()
	a.issue("server")
	args = append([]string{"--cert-file", a.path("server.pem"), "--key-file", a.path("server.key")}, args...)
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
			a := newAuthority(t)
			config := a.config(nil)
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
	a := newAuthority(t)
	alice := a.issue("alice")
	f := newTLSFixture(t, a, a.config(&alice), "--trusted-ca-file", a.path("ca.pem"), "--client-cert-auth")
	f.put("a", "1")
	ctx, cancel := context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	if _, err := dialTLS(t, f.server, a.config(nil)).Get(ctx, "a"); err == nil {
		t.Error("a client without a certificate was accepted")
	}
	unknown := newAuthority(t).issue("mallory")
	ctx, cancel = context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	if _, err := dialTLS(t, f.server, a.config(&unknown)).Get(ctx, "a"); err == nil {
		t.Error("a client of another authority was accepted")
	}
	f.put("a", "2")
}

// Writers and a watch continue, and new clients trust only the new authority.
func TestCertificatesRotateUnderLoad(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	f := newTLSFixture(t, a, a.config(nil))
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
		next := newAuthority(t)
		next.issue("server")
		for _, name := range []string{"server.pem", "server.key"} {
			f.must(os.Rename(next.path(name), a.path(name)))
		}
		client := dialTLS(t, f.server, next.config(nil))
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
	a := newAuthority(t)
	f := newTLSFixture(t, a, a.config(nil))
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
