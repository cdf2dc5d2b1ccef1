package conformance

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
)

func (f *fixture) holds(cmps ...clientv3.Cmp) bool {
	f.Helper()
	r, err := f.client.Txn(f.ctx).If(cmps...).Commit()
	f.must(err)
	return r.Succeeded
}

func TestTxnComparesEveryTargetWithEveryResult(t *testing.T) {
	f := newFixture(t)
	f.put("x", "0")
	f.put("k", "m")
	f.put("k", "m") // create 3, mod 4, version 2, value m, no lease
	targets := []struct {
		name              string
		cmp               func(string) clientv3.Cmp
		less, equal, more any
	}{
		{"create", clientv3.CreateRevision, 2, 3, 4},
		{"mod", clientv3.ModRevision, 3, 4, 5},
		{"version", clientv3.Version, 1, 2, 3},
		{"value", clientv3.Value, "l", "m", "n"},
		{"lease", clientv3.LeaseValue, -1, 0, 1},
	}
	for _, c := range targets {
		for result, holds := range map[string][3]bool{
			"=": {false, true, false}, "!=": {true, false, true},
			">": {true, false, false}, "<": {false, false, true},
		} {
			for i, operand := range []any{c.less, c.equal, c.more} {
				what := fmt.Sprintf("%s %s %v", c.name, result, operand)
				want(f, what, f.holds(clientv3.Compare(c.cmp("k"), result, operand)), holds[i])
			}
		}
	}
}

func TestTxnComparesWithMissingKeyAsZeroButNotItsValue(t *testing.T) {
	f := newFixture(t)
	f.put("x", "1")
	want(f, "create", f.holds(clientv3.Compare(clientv3.CreateRevision("no"), "=", 0)), true)
	want(f, "mod", f.holds(clientv3.Compare(clientv3.ModRevision("no"), "=", 0)), true)
	want(f, "version", f.holds(clientv3.Compare(clientv3.Version("no"), "=", 0)), true)
	want(f, "lease", f.holds(clientv3.Compare(clientv3.LeaseValue("no"), "=", 0)), true)
	want(f, "greater", f.holds(clientv3.Compare(clientv3.Version("no"), ">", 0)), false)
	want(f, "value", f.holds(clientv3.Compare(clientv3.Value("no"), "=", "")), false)
	want(f, "value differs", f.holds(clientv3.Compare(clientv3.Value("no"), "!=", "a")), false)
}

func TestTxnComparesRanges(t *testing.T) {
	f := newFixture(t)
	fruit(f)
	version := func(result string, n int) clientv3.Cmp {
		return clientv3.Compare(clientv3.Version("a"), result, n).WithPrefix()
	}
	want(f, "all at least 1", f.holds(version(">", 0)), true)
	want(f, "all 1", f.holds(version("=", 1)), false)
	want(f, "range", f.holds(clientv3.Compare(clientv3.Version("ab"), "=", 1).WithRange("b")), true)
	want(f, "empty range", f.holds(clientv3.Compare(clientv3.Version("x"), "=", 0).WithPrefix()), true)
	want(f, "values", f.holds(clientv3.Compare(clientv3.Value("a"), "<", "z").WithPrefix()), true)
	want(f, "two, one wrong", f.holds(version(">", 0), clientv3.Compare(clientv3.Version("b"), "=", 1)), false)
}

func TestTxnTakesOneBranchAtOneRevision(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	r, err := f.client.Txn(f.ctx).
		If(clientv3.Compare(clientv3.Value("a"), "=", "1")).
		Then(clientv3.OpPut("a", "2"), clientv3.OpPut("b", "2"), clientv3.OpGet("", clientv3.WithPrefix())).
		Else(clientv3.OpPut("c", "3")).Commit()
	f.must(err)
	want(f, "succeeded", r.Succeeded, true)
	want(f, "revision", r.Header.Revision, 3)
	inside := r.Responses[2].GetResponseRange()
	f.wantKV(inside.Kvs[0], "a=2 2/3/2")
	f.wantKV(inside.Kvs[1], "b=2 3/3/1")
	want(f, "revision inside", inside.Header.Revision, 3)
	r, err = f.client.Txn(f.ctx).
		If(clientv3.Compare(clientv3.Value("a"), "=", "1")).
		Then(clientv3.OpPut("a", "4")).
		Else(clientv3.OpGet("a"), clientv3.OpDelete("b", clientv3.WithPrevKV())).Commit()
	f.must(err)
	want(f, "succeeded", r.Succeeded, false)
	f.wantKV(r.Responses[0].GetResponseRange().Kvs[0], "a=2 2/3/2")
	f.wantKV(r.Responses[1].GetResponseDeleteRange().PrevKvs[0], "b=2 3/3/1")
	want(f, "revision", r.Header.Revision, 4)
}

func TestTxnWithoutEffectLeavesRevision(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	for _, op := range []clientv3.Op{clientv3.OpGet("a"), clientv3.OpDelete("no")} {
		r, err := f.client.Txn(f.ctx).Then(op).Commit()
		f.must(err)
		want(f, "revision", r.Header.Revision, 2)
	}
	r, err := f.client.Txn(f.ctx).Commit()
	f.must(err)
	want(f, "empty txn succeeds", r.Succeeded, true)
}

func TestTxnRangeInsideSeesOldRevision(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("a", "2")
	r, err := f.client.Txn(f.ctx).Then(clientv3.OpPut("a", "3"),
		clientv3.OpGet("a", clientv3.WithRev(2)), clientv3.OpGet("a")).Commit()
	f.must(err)
	f.wantKV(r.Responses[1].GetResponseRange().Kvs[0], "a=1 2/2/1")
	f.wantKV(r.Responses[2].GetResponseRange().Kvs[0], "a=3 2/4/3")
}

func TestTxnNests(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	inner := func(value string) clientv3.Op {
		return clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.Value("a"), "=", value)},
			[]clientv3.Op{clientv3.OpPut("then-"+value, "x")},
			[]clientv3.Op{clientv3.OpPut("else-"+value, "x")})
	}
	// Compares look at the state before the transaction, so the put of a changes nothing for them.
	r, err := f.client.Txn(f.ctx).Then(clientv3.OpPut("a", "2"), inner("1"), inner("2")).Commit()
	f.must(err)
	want(f, "first", r.Responses[1].GetResponseTxn().Succeeded, true)
	want(f, "second", r.Responses[2].GetResponseTxn().Succeeded, false)
	f.wantKeys(f.get("", clientv3.WithPrefix()).Kvs, "a else-2 then-1")
	want(f, "one revision", r.Header.Revision, 3)
}

func TestTxnRefusesDuplicateKeys(t *testing.T) {
	f := newFixture(t)
	nested := func(then, other []clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, then, other) }
	put := func(key string) clientv3.Op { return clientv3.OpPut(key, "x") }
	del := func(key string, opts ...clientv3.OpOption) clientv3.Op { return clientv3.OpDelete(key, opts...) }
	for name, ops := range map[string][]clientv3.Op{
		"put put":            {put("a"), put("a")},
		"put delete":         {put("a"), del("a")},
		"delete range put":   {del("a", clientv3.WithPrefix()), put("ab")},
		"nested put":         {put("a"), nested([]clientv3.Op{put("a")}, nil)},
		"nested delete":      {put("a"), nested([]clientv3.Op{del("a")}, nil)},
		"nested else":        {put("a"), nested(nil, []clientv3.Op{put("a")})},
		"two nested":         {nested([]clientv3.Op{put("a")}, nil), nested([]clientv3.Op{put("a")}, nil)},
		"delete and nested":  {del("a"), nested([]clientv3.Op{put("a")}, nil)},
		"two levels further": {put("a"), nested([]clientv3.Op{nested([]clientv3.Op{put("a")}, nil)}, nil)},
	} {
		_, err := f.client.Txn(f.ctx).Then(ops...).Commit()
		if err != rpctypes.ErrDuplicateKey {
			t.Errorf("%s: error is %v", name, err)
		}
		_, err = f.client.Txn(f.ctx).Else(ops...).Commit()
		if err != rpctypes.ErrDuplicateKey {
			t.Errorf("%s in the other branch: error is %v", name, err)
		}
	}
	for name, ops := range map[string][]clientv3.Op{
		"deletes may overlap":       {del("a"), del("a", clientv3.WithPrefix())},
		"then and else of a nested": {nested([]clientv3.Op{put("a")}, []clientv3.Op{put("a")})},
		"range and put":             {clientv3.OpGet("a"), put("a")},
		"delete next to put":        {del("a", clientv3.WithRange("b")), put("b")},
	} {
		if _, err := f.client.Txn(f.ctx).Then(ops...).Commit(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func gets(n int) (ops []clientv3.Op) {
	for range n {
		ops = append(ops, clientv3.OpGet("a"))
	}
	return ops
}

func TestTxnLimitsOperations(t *testing.T) {
	f := newFixture(t)
	_, err := f.client.Txn(f.ctx).Then(gets(128)...).Else(gets(128)...).Commit()
	f.must(err)
	_, err = f.client.Txn(f.ctx).Then(gets(129)...).Commit()
	f.wantError(err, rpctypes.ErrTooManyOps)
	_, err = f.client.Txn(f.ctx).Else(gets(129)...).Commit()
	f.wantError(err, rpctypes.ErrTooManyOps)
	var cmps []clientv3.Cmp
	for range 129 {
		cmps = append(cmps, clientv3.Compare(clientv3.Version("a"), "=", 0))
	}
	_, err = f.client.Txn(f.ctx).If(cmps...).Commit()
	f.wantError(err, rpctypes.ErrTooManyOps)
	// A nested transaction may have the operations that its parent leaves.
	_, err = f.client.Txn(f.ctx).Then(clientv3.OpTxn(nil, gets(127), nil)).Commit()
	f.must(err)
	_, err = f.client.Txn(f.ctx).Then(clientv3.OpTxn(nil, gets(128), nil)).Commit()
	f.wantError(err, rpctypes.ErrTooManyOps)
}

func TestMaxTxnOpsFlag(t *testing.T) {
	f := newFixture(t, "--max-txn-ops", "4")
	_, err := f.client.Txn(f.ctx).Then(gets(4)...).Commit()
	f.must(err)
	_, err = f.client.Txn(f.ctx).Then(gets(5)...).Commit()
	f.wantError(err, rpctypes.ErrTooManyOps)
}

func TestTxnChecksEverythingBeforeItWrites(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("a", "2")
	f.compact(3)
	put := clientv3.OpPut("b", "1")
	for name, c := range map[string]struct {
		op   clientv3.Op
		want error
	}{
		"unknown lease":      {clientv3.OpPut("c", "1", clientv3.WithLease(9)), rpctypes.ErrLeaseNotFound},
		"ignore value":       {clientv3.OpPut("c", "", clientv3.WithIgnoreValue()), rpctypes.ErrKeyNotFound},
		"ignore lease":       {clientv3.OpPut("c", "1", clientv3.WithIgnoreLease()), rpctypes.ErrKeyNotFound},
		"future revision":    {clientv3.OpGet("a", clientv3.WithRev(99)), rpctypes.ErrFutureRev},
		"its own revision":   {clientv3.OpGet("a", clientv3.WithRev(4)), rpctypes.ErrFutureRev},
		"compacted revision": {clientv3.OpGet("a", clientv3.WithRev(2)), rpctypes.ErrCompacted},
	} {
		_, err := f.client.Txn(f.ctx).Then(put, c.op).Commit()
		if err != c.want {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	want(f, "revision", f.revision(), 3)
	want(f, "b", f.get("b").Count, 0)
	// The branch that is not taken is checked less strictly.
	_, err := f.client.Txn(f.ctx).Then(put).Else(clientv3.OpPut("c", "1", clientv3.WithLease(9))).Commit()
	f.must(err)
}

func TestTxnRefusesMalformedOperations(t *testing.T) {
	f := newFixture(t)
	kv := f.kv()
	for name, c := range map[string]struct {
		txn  *pb.TxnRequest
		want error
	}{
		"empty operation":     {&pb.TxnRequest{Success: []*pb.RequestOp{{}}}, rpctypes.ErrGRPCKeyNotFound},
		"compare without key": {&pb.TxnRequest{Compare: []*pb.Compare{{}}}, rpctypes.ErrGRPCEmptyKey},
		"put without key": {&pb.TxnRequest{Failure: []*pb.RequestOp{{
			Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}}}}, rpctypes.ErrGRPCEmptyKey},
		"sort": {&pb.TxnRequest{Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: []byte("a"), SortOrder: 7}}}}}, rpctypes.ErrGRPCInvalidSortOption},
	} {
		_, err := kv.Txn(f.ctx, c.txn)
		if err == nil || err.Error() != c.want.Error() {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
