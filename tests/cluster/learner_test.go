package cluster

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"vigil/tests/harness"
)

// useAll makes calls of all kinds through the front, each of which only a voting member can answer.
func (f *fixture) useAll(client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "a", "x"); err != nil {
		return err
	}
	if _, err := client.Get(ctx, "a"); err != nil {
		return err
	}
	lease, err := client.Grant(ctx, 60)
	if err != nil {
		return err
	}
	if _, err = client.KeepAliveOnce(ctx, lease.ID); err != nil {
		return err
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(lease.ID))
	if err != nil {
		return err
	}
	defer session.Close()
	if err = concurrency.NewMutex(session, "lock").Lock(ctx); err != nil {
		return err
	}
	_, err = client.MemberList(ctx)
	return err
}

// A learner answers serializable reads and little else, with an error that ends calls. It may be among the
// endpoints, whichever connection meets it, and is useful once it votes.
func TestLearnerAmongTheEndpoints(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		c := harness.StartCluster(t, harness.ClusterOptions{Binary: binary, Size: 1})
		voter := c.Members[0]
		learner := c.AddLearner()
		f := &fixture{T: t, cluster: c}
		var cancel context.CancelFunc
		f.ctx, cancel = context.WithTimeout(context.Background(), testLimit)
		defer cancel()

		voter.Relay.Cut() // so that only the learner can be reached at first
		f.front = harness.NewFront(c, harness.FrontOptions{})
		f.front.Begin()
		f.via = f.client(f.front.URL)
		f.awaitPage(f.front.URL+"/readyz", 503, "can be followed yet")
		voter.Relay.Restore()
		f.awaitSync(f.via)
		for range 20 {
			f.must(f.useAll(f.via))
		}

		// Every connection to the voter breaks; some of the new ones meet the learner first.
		for range 4 {
			voter.Relay.CutAll()
			f.eventually("the loss is noticed", func() bool { return f.useAll(f.via) == nil })
			for range 5 {
				f.must(f.useAll(f.via))
			}
		}
		f.awaitPage(f.front.URL+"/readyz", 200, "ok")

		c.Promote(learner)
		voter.Relay.Cut()
		f.eventually("the promoted member is used", func() bool { return f.useAll(f.via) == nil })
		f.must(f.useAll(f.via))
		f.awaitPage(f.front.URL+"/readyz", 200, "ok")
	})
}
