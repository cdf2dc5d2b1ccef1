package cluster

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// The certificates of the members and of the front expire and are replaced by others in time: after a
// lost connection the front must use the new ones.
func TestCertificatesAreRotated(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("the front has no certificate of its own")
	}
	onEach(t, func(t *testing.T, binary string) {
		authority := harness.NewAuthority(t)
		authority.Issue("server")
		f := newFixture(t, harness.ClusterOptions{Binary: binary, TLS: authority}, harness.FrontOptions{})
		first := f.put(f.via, "k", "1")
		events := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
		f.follow(events, first, first)

		const validity = 3 * time.Second
		authority.Validity = validity
		authority.Issue("vigil")
		f.reconnect()
		next := f.put(f.via, "k", "2")
		f.follow(events, next, next)
		expired := time.Now().Add(validity)
		authority.Validity = time.Hour
		authority.Issue("vigil")
		authority.Issue("server")
		<-time.After(time.Until(expired))
		f.reconnect()
		next = f.put(f.via, "k", "3")
		f.follow(events, next, next)
	})
}

// reconnect cuts all links once and waits until the front writes again.
func (f *fixture) reconnect() {
	f.Helper()
	for _, member := range f.cluster.Members {
		member.Relay.CutAll()
	}
	f.eventually("a write over a new connection", func() bool {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		_, err := f.via.Put(ctx, "other", "x")
		return err == nil
	})
}
