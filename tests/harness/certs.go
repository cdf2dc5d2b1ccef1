package harness

import (
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
	"testing"
	"time"
)

// Authority signs certificates for a test's servers and clients.
type Authority struct {
	testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64

	Validity time.Duration // of what is issued next
}

func (a *Authority) make(template *x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
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
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(a.Validity)
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

// NewAuthority makes a key and writes ca.pem.
func NewAuthority(t testing.TB) *Authority {
	a := &Authority{TB: t, dir: t.TempDir(), Validity: time.Hour}
	a.cert, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	a.Write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// Path is where a file of the authority is.
func (a *Authority) Path(name string) string { return filepath.Join(a.dir, name) }

// Write replaces a file atomically, as certificate managers do.
func (a *Authority) Write(name, kind string, der []byte) {
	a.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.Path(name+".new"), text, 0o600); err != nil {
		a.Fatal(err)
	}
	if err := os.Rename(a.Path(name+".new"), a.Path(name)); err != nil {
		a.Fatal(err)
	}
}

// Issue signs a certificate for clients and servers, and writes it to name.pem and name.key.
func (a *Authority) Issue(name string) tls.Certificate {
	a.Helper()
	return a.IssueAs(name, name)
}

// IssueAs is Issue with another common name, or none.
func (a *Authority) IssueAs(name, common string) tls.Certificate {
	a.Helper()
	cert, key := a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: common}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.Write(name+".pem", "CERTIFICATE", cert.Raw)
	a.Write(name+".key", "PRIVATE KEY", der)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// Config trusts the authority; client may be nil.
func (a *Authority) Config(client *tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool}
	if client != nil {
		config.Certificates = []tls.Certificate{*client}
	}
	return config
}
