package differential

import (
	"fmt"
	"math/rand"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// profile has the keys of a run and the size of its transactions.
type profile struct {
	name        string
	keys        []string
	valueMax    int
	batchWrites int
	batchReads  int
	txnDepth    int
	limitAlways bool // most ranges carry a limit: there are too many keys to list all the time
}

// profiles: few keys, so that requests often use the same ones; many keys; deep transactions.
func profiles() []profile {
	return []profile{
		{name: "small", keys: smallKeys(), valueMax: 6, batchWrites: 24, batchReads: 80, txnDepth: 2},
		{name: "wide", keys: wideKeys(1500), valueMax: 60, batchWrites: 40, batchReads: 60, txnDepth: 1, limitAlways: true},
		{name: "deep", keys: smallKeys(), valueMax: 3, batchWrites: 40, batchReads: 40, txnDepth: 5},
	}
}

func smallKeys() []string {
	keys := []string{"\x00", "\x00\x00", "\x01", "a\x00", "a\x00b", "\xff", "\xff\xff"}
	for _, a := range "abc" {
		keys = append(keys, string(a))
		for _, b := range "abc" {
			keys = append(keys, string(a)+string(b))
			for _, c := range "ab" {
				keys = append(keys, string(a)+string(b)+string(c))
			}
		}
	}
	return keys
}

func wideKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("/registry/things/%05d", i)
	}
	return keys
}

// request is one call. Writes keep their order; reads run concurrently between writes.
type request struct {
	body   proto.Message
	stream bool // RangeStream rather than Range
	as     int  // the token: noToken, a slot, …
	shown  int  // the form in which the token is sent
	into   int  // for Authenticate: the slot of the new token
}

func (r request) String() string {
	kind := string(r.body.ProtoReflect().Descriptor().Name())
	if r.stream {
		kind = "RangeStream"
	}
	text := fmt.Sprint(r.body)
	if len(text) > 4000 {
		text = text[:4000] + "…"
	}
	if r.into != 0 {
		text += fmt.Sprintf(" → slot %d", r.into)
	}
	if r.as != noToken {
		return fmt.Sprintf("%s{%s} as %d", kind, text, r.as)
	}
	return kind + "{" + text + "}"
}

// generator makes requests from a seed and from the earlier answers of the reference.
type generator struct {
	*rand.Rand
	profile
	revision  int64
	compacted int64
}

func (g *generator) chance(percent int) bool { return g.Intn(100) < percent }

func (g *generator) key() []byte {
	if g.chance(1) {
		return nil
	}
	return []byte(g.keys[g.Intn(len(g.keys))])
}

// rangeEnd picks among every form a range end has: none, from key, prefix, ordinary, empty range.
func (g *generator) rangeEnd(key []byte) []byte {
	switch g.Intn(12) {
	case 0, 1, 2:
		return nil
	case 3:
		return []byte{0}
	case 4, 5:
		return prefixEnd(key)
	case 6:
		return append([]byte{}, key...)
	case 7:
		return append(append([]byte{}, key...), 0)
	}
	return g.key()
}

func prefixEnd(key []byte) []byte {
	end := append([]byte{}, key...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{0}
}

func (g *generator) value() []byte {
	value := make([]byte, g.Intn(g.valueMax+1))
	for i := range value {
		value[i] = "xyz"[g.Intn(3)]
	}
	return value
}

// anyRevision is current, past, compacted, just compacted, future or invalid.
func (g *generator) anyRevision() int64 {
	switch g.Intn(12) {
	case 0, 1, 2, 3, 4:
		return 0
	case 5:
		return g.compacted
	case 6:
		return g.compacted - int64(g.Intn(3))
	case 7:
		return g.revision + int64(g.Intn(3))
	case 8:
		return []int64{-1, 1, 2, 1 << 40, -1 << 63, 1<<63 - 1}[g.Intn(6)]
	}
	return g.pastRevision()
}

func (g *generator) pastRevision() int64 {
	return g.compacted + g.Int63n(max(1, g.revision-g.compacted+1))
}

func (g *generator) rangeRequest(inStream bool) *pb.RangeRequest {
	key := g.key()
	r := &pb.RangeRequest{Key: key, RangeEnd: g.rangeEnd(key), Revision: g.anyRevision()}
	if g.chance(40) || (g.limitAlways && g.chance(90)) {
		r.Limit = int64(g.Intn(12))
		if g.chance(5) {
			r.Limit = []int64{-1, 1 << 40, 1<<63 - 1, -1 << 63, 100}[g.Intn(5)]
		}
	}
	r.Serializable = g.chance(50)
	r.KeysOnly = g.chance(20)
	r.CountOnly = g.chance(15)
	if g.chance(35) && !(inStream && g.chance(90)) {
		r.SortOrder = pb.RangeRequest_SortOrder(g.Intn(3))
		r.SortTarget = pb.RangeRequest_SortTarget(g.Intn(5))
		if inStream && r.SortOrder == pb.RangeRequest_NONE {
			r.SortTarget = pb.RangeRequest_KEY // see knownDifferences: stream-sort-without-order
		}
	}
	if g.chance(1) {
		r.SortOrder = pb.RangeRequest_SortOrder(3 + g.Intn(3))
	}
	if g.chance(1) {
		r.SortTarget = pb.RangeRequest_SortTarget(5 + g.Intn(3))
	}
	if !inStream || g.chance(5) {
		for _, filter := range []*int64{
			&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision,
		} {
			if g.chance(6) {
				*filter = g.anyRevision()
			}
		}
	}
	return r
}

func (g *generator) put(key []byte) *pb.PutRequest {
	p := &pb.PutRequest{Key: key, Value: g.value(), PrevKv: g.chance(30)}
	if g.chance(10) {
		p.IgnoreValue = true
		if g.chance(90) {
			p.Value = nil
		}
	}
	p.IgnoreLease = g.chance(8)
	if g.chance(20) {
		p.Lease = g.lease()
	}
	return p
}

func (g *generator) deleteRange() *pb.DeleteRangeRequest {
	key := g.key()
	d := &pb.DeleteRangeRequest{Key: key, PrevKv: g.chance(30)}
	if g.chance(25) {
		d.RangeEnd = g.rangeEnd(key)
	}
	// Deleting everything too often would leave little to compare.
	if len(d.RangeEnd) == 1 && d.RangeEnd[0] == 0 && g.chance(80) {
		d.RangeEnd = nil
	}
	return d
}

func (g *generator) compare() *pb.Compare {
	key := g.key()
	c := &pb.Compare{
		Key:    key,
		Result: pb.Compare_CompareResult(g.Intn(4)),
		Target: pb.Compare_CompareTarget(g.Intn(5)),
	}
	if g.chance(20) {
		c.RangeEnd = g.rangeEnd(key)
	}
	if g.chance(2) {
		c.Result = 4 + pb.Compare_CompareResult(g.Intn(3))
	}
	if g.chance(2) {
		c.Target = 5 + pb.Compare_CompareTarget(g.Intn(3))
	}
	union := c.Target
	if g.chance(5) {
		union = pb.Compare_CompareTarget(g.Intn(6)) // another field than the target's, or none
	}
	switch union {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: int64(g.Intn(4))}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: g.compareRevision()}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: g.compareRevision()}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: g.value()}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: []int64{0, -1, g.lease()}[g.Intn(3)]}
	}
	return c
}

func (g *generator) compareRevision() int64 {
	if g.chance(40) {
		return 0
	}
	return g.pastRevision()
}

func (g *generator) txn(depth int) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for range g.Intn(3) {
		t.Compare = append(t.Compare, g.compare())
	}
	t.Success = g.ops(depth)
	t.Failure = g.ops(depth)
	if g.chance(1) {
		// Around the limit of 128, alone and shared with the parent.
		for range 120 + g.Intn(12) {
			t.Success = append(t.Success, opRange(&pb.RangeRequest{Key: []byte("a"), CountOnly: true}))
		}
	}
	return t
}

// avoidPanics removes ignore_value and ignore_lease from a transaction in which a key may be deleted
// before it is put: a real etcd then looks up a previous value that is deleted, and panics. Its check for
// such overlaps misses deletes up to the end ("\x00") and deletes in a transaction nested next to the put.
func avoidPanics(t *pb.TxnRequest) {
	nested, deletes, toTheEnd := false, false, false
	eachOp(t, func(op *pb.RequestOp) {
		nested = nested || op.GetRequestTxn() != nil
		if d := op.GetRequestDeleteRange(); d != nil {
			deletes = true
			toTheEnd = toTheEnd || string(d.RangeEnd) == "\x00"
		}
	})
	if !toTheEnd && !(nested && deletes) {
		return
	}
	eachOp(t, func(op *pb.RequestOp) {
		if p := op.GetRequestPut(); p != nil {
			p.IgnoreValue, p.IgnoreLease = false, false
		}
	})
}

func eachOp(t *pb.TxnRequest, visit func(*pb.RequestOp)) {
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			visit(op)
			if nested := op.GetRequestTxn(); nested != nil {
				eachOp(nested, visit)
			}
		}
	}
}

func (g *generator) ops(depth int) []*pb.RequestOp {
	var ops []*pb.RequestOp
	used := map[string]bool{}
	for range g.Intn(5) {
		switch kind := g.Intn(100); {
		case kind < 45:
			key := g.key()
			if used[string(key)] && g.chance(90) {
				continue
			}
			used[string(key)] = true
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: g.put(key)}})
		case kind < 60:
			d := g.deleteRange()
			if g.chance(80) {
				d.RangeEnd = nil
				if used[string(d.Key)] && g.chance(90) {
					continue
				}
				used[string(d.Key)] = true
			}
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: d}})
		case kind < 85 || depth == 0:
			ops = append(ops, opRange(g.rangeRequest(false)))
		case kind < 99:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: g.txn(depth - 1)}})
		case g.chance(30):
			ops = append(ops, &pb.RequestOp{})
		}
	}
	return ops
}

func opRange(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func (g *generator) compaction() *pb.CompactionRequest {
	c := &pb.CompactionRequest{Physical: g.chance(50)}
	switch g.Intn(10) {
	case 0:
		c.Revision = g.anyRevision()
	case 1:
		c.Revision = g.revision
	default:
		c.Revision = g.pastRevision()
	}
	return c
}

// write makes the next request that may change the store.
func (g *generator) write() request {
	switch kind := g.Intn(1000); {
	case kind < 400:
		return request{body: g.put(g.key())}
	case kind < 520:
		return request{body: g.deleteRange()}
	case kind < 600:
		return request{body: g.leaseWrite()}
	case kind < 994:
		t := g.txn(g.txnDepth)
		avoidPanics(t)
		return request{body: t}
	default:
		return request{body: g.compaction()}
	}
}

// oversized makes requests on both sides of the size limits, but not at the exact byte, because the size
// of etcd's envelope varies.
func (g *generator) oversized() []request {
	const request1 = 1536 << 10
	const message = 2 << 20
	size := []int{request1 - 200, request1 + 64, message - 64, message + 64}[g.Intn(4)]
	key := []byte("\xff\xfebig")
	return []request{
		{body: &pb.PutRequest{Key: key, Value: make([]byte, size)}},
		{body: &pb.DeleteRangeRequest{Key: key}},
	}
}

func (g *generator) writes() []request {
	var list []request
	for range g.batchWrites {
		list = append(list, g.write())
	}
	if g.Intn(150) == 0 {
		list = append(list, g.oversized()...)
	}
	return list
}

func (g *generator) reads() []request {
	var list []request
	for range g.batchReads {
		stream := g.chance(20)
		list = append(list, request{body: g.rangeRequest(stream), stream: stream})
	}
	if g.chance(10) {
		list = append(list, request{body: &pb.HashKVRequest{Revision: g.anyRevision()}})
	}
	for range 4 {
		list = append(list, request{body: g.leaseRead()})
	}
	return list
}

// fill puts every key once, in transactions.
func (g *generator) fill() []request {
	var list []request
	for begin := 0; begin < len(g.keys); begin += 50 {
		t := &pb.TxnRequest{}
		for _, key := range g.keys[begin:min(begin+50, len(g.keys))] {
			t.Success = append(t.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: []byte(key), Value: g.value()}}})
		}
		list = append(list, request{body: t})
	}
	return list
}
