package differential

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestShrinkLeavesOnlyWhatMatters(t *testing.T) {
	var writes []request
	for i := range 200 {
		writes = append(writes, request{body: &pb.PutRequest{Key: []byte{byte(i)}}})
	}
	last := request{body: &pb.RangeRequest{Key: []byte("x")}}
	// Differs once the keys 17 and 120 were put before the range.
	list, d := shrink(writes, last, time.Minute, func(list []request) *difference {
		seen := 0
		for _, r := range list {
			if p, ok := r.body.(*pb.PutRequest); ok && (p.Key[0] == 17 || p.Key[0] == 120) {
				seen++
			} else if r.body == last.body && seen == 2 {
				return &difference{request: r}
			}
		}
		return nil
	})
	if d == nil || len(list) != 3 {
		t.Errorf("left %v", list)
	}
}
