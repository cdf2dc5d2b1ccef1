package cluster

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"vigil/tests/harness"
	"vigil/tests/watch"
)

func defragment(s *session, member *harness.Member) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	maintenance := pb.NewMaintenanceClient(s.cluster.Dial(member))
	if _, err := maintenance.Defragment(ctx, &pb.DefragmentRequest{}); err != nil {
		s.Fatal(err)
	}
}

// catchUp adds watches through both fronts, most of which begin in the past.
func (s *session) catchUp(streams, each int) {
	for front := range s.fronts {
		s.Watch(s.place(front), watch.Load{Streams: streams / len(s.fronts), Each: each})
	}
}
