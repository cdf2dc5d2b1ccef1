package crash

import (
	"context"
	"math/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"vigil/tests/harness"
)

const (
	leaseKillsDivisor = 5 // relative to the kills of TestKillNine
	leaseWorkers      = 12
)

// Every acknowledged grant, revoke and attachment exists after a kill; a revoke is executed with all
// of its keys or not at all; no key is attached to a lease that does not exist.
func TestKillNineLeases(t *testing.T) {
	seed := number("VIGIL_CRASH_SEED", time.Now().UnixNano())
	kills := int(number("VIGIL_KILLS", killsDefault)) / leaseKillsDivisor
	t.Logf("seed %d, %d kills", seed, kills)
	random := rand.New(rand.NewSource(seed))
	options := harness.Options{Dir: filepath.Join(t.TempDir(), "data"), Port: harness.FreePort()}
	if !harness.IsEtcd(harness.Subject()) {
		options.Args = []string{"--segment-bytes", "4194304", "--checkpoint-bytes", "1048576"}
	}
	var workers []*leaseWorker
	for id := range int64(leaseWorkers) {
		workers = append(workers, newLeaseWorker(1+id, seed))
	}
	for kill := 0; kill <= kills && !t.Failed(); kill++ {
		server, err := harness.Launch(harness.Subject(), options)
		if err != nil {
			t.Fatal(err)
		}
		checkLeases(t, server, workers)
		var all sync.WaitGroup
		for _, one := range workers {
			all.Add(1)
			go func() {
				defer all.Done()
				one.run(server.Addr)
			}()
		}
		time.Sleep(time.Duration(random.Intn(120_000)) * time.Microsecond)
		server.Kill()
		all.Wait()
	}
	acked := 0
	for _, one := range workers {
		acked += one.acked
		if one.failure != nil {
			t.Error(one.failure)
		}
	}
	t.Logf("%d acknowledged requests", acked)
	if acked < 10*kills {
		t.Errorf("only %d requests were acknowledged: nothing was tested", acked)
	}
}

func checkLeases(t *testing.T, server *harness.Server, workers []*leaseWorker) {
	conn, err := dial(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	for _, one := range workers {
		if err := one.check(ctx, conn); err != nil {
			t.Error(err)
		}
	}
}

// The checker detects a lost lease and half a revoke. They are simulated by requests that the worker
// does not know of.
func TestPlantedLeaseLossesAreDetected(t *testing.T) {
	server := harness.Start(t, harness.Options{})
	conn, err := dial(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	kv, lease := pb.NewKVClient(conn), pb.NewLeaseClient(conn)
	plants := []func(w *leaseWorker) error{
		func(w *leaseWorker) error {
			_, err := lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: w.id*100 + 1})
			return err
		},
		func(w *leaseWorker) error {
			_, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(w.prefix() + "a")})
			return err
		},
		func(w *leaseWorker) error {
			_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte(w.prefix() + "a")})
			return err
		},
	}
	for i, plant := range plants {
		w := newLeaseWorker(int64(50+i), 1)
		on := w.id*100 + 1
		if _, err := lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: on, TTL: leaseTTL}); err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(ctx, &pb.PutRequest{Key: []byte(w.prefix() + "a"), Lease: on}); err != nil {
			t.Fatal(err)
		}
		w.has.leases[on] = true
		w.has.keys[w.prefix()+"a"] = on
		if err := w.check(ctx, conn); err != nil {
			t.Fatalf("nothing was lost, but: %v", err)
		}
		if err := plant(w); err != nil {
			t.Fatal(err)
		}
		if w.check(ctx, conn) == nil {
			t.Errorf("planted fault %d is not detected", i)
		}
	}
}
