package crash

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"vigil/tests/harness"
)

// The checker detects lost and torn writes. They are simulated by writes that a worker does not
// know of.
func TestPlantedLossesAreDetected(t *testing.T) {
	server := harness.Start(t, harness.Options{})
	conn, err := dial(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	kv := pb.NewKVClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()

	worked := func() *worker {
		w := newWorker(1, 1)
		for range 100 {
			next := w.next()
			if next.revision, err = send(kv, next); err != nil {
				t.Fatal(err)
			}
			w.acked = append(w.acked, next)
			w.apply(next)
		}
		if err := w.check(ctx, kv); err != nil {
			t.Fatalf("nothing was lost, but: %v", err)
		}
		if err := w.checkHistory(ctx, kv, 0, 1000); err != nil {
			t.Fatalf("no history was lost, but: %v", err)
		}
		return w
	}
	put := func(key, value string) {
		if _, err := send(kv, write{keys: []string{key}, value: value}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("lost", func(t *testing.T) {
		w := worked()
		if _, err := send(kv, write{keys: []string{w.key(0)}, delete: true}); err != nil {
			t.Fatal(err)
		}
		if w.check(ctx, kv) == nil {
			t.Error("not detected")
		}
	})
	t.Run("other revision", func(t *testing.T) {
		w := worked()
		put(w.key(0), w.state[w.key(0)].value)
		if w.check(ctx, kv) == nil {
			t.Error("not detected")
		}
	})
	t.Run("half of a transaction", func(t *testing.T) {
		w := worked()
		w.pending = &write{keys: []string{w.key(0), w.key(1)}, value: "torn"}
		put(w.key(1), "torn")
		if w.check(ctx, kv) == nil {
			t.Error("not detected")
		}
	})
	t.Run("whole of a transaction", func(t *testing.T) {
		w := worked()
		pending := write{keys: []string{w.key(0), w.key(1)}, value: "whole"}
		if _, err := send(kv, pending); err != nil {
			t.Fatal(err)
		}
		w.pending = &pending
		if err := w.check(ctx, kv); err != nil {
			t.Error(err)
		}
	})
	t.Run("history", func(t *testing.T) {
		w := worked()
		w.acked[50].value += "."
		w.acked[50].delete = false
		if w.checkHistory(ctx, kv, 0, 1000) == nil {
			t.Error("not detected")
		}
	})
}
