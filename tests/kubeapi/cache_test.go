package kubeapi

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
)

// kv is "key=value@created,modified".
func kv(text string) *mvccpb.KeyValue {
	key, rest, _ := strings.Cut(text, "=")
	value, revisions, _ := strings.Cut(rest, "@")
	got := &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)}
	fmt.Sscanf(revisions, "%d,%d", &got.CreateRevision, &got.ModRevision)
	return got
}

func put(now, before string) clientv3.WatchResponse {
	event := &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv(now)}
	if before != "" {
		event.PrevKv = kv(before)
	}
	return clientv3.WatchResponse{Events: []*clientv3.Event{event}}
}

func gone(now, before string) clientv3.WatchResponse {
	response := put(now, before)
	response.Events[0].Type = clientv3.EventTypeDelete
	return response
}

func progress(revision int64) clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}}
}

// The cache detects planted faults: each row but the first is a watch that a kube-apiserver could not use.
func TestCacheFindsPlantedFaults(t *testing.T) {
	for _, row := range []struct {
		name      string
		responses []clientv3.WatchResponse
		fault     string
	}{
		{"none", []clientv3.WatchResponse{
			put("a=1@2,2", ""), put("a=2@2,3", "a=1@2,2"), progress(3), gone("a=@0,4", "a=2@2,3"), progress(9),
			put("a=3@10,10", ""),
		}, ""},
		{"no previous version", []clientv3.WatchResponse{put("a=1@2,2", ""), put("a=2@2,3", "")}, "PrevKv=nil"},
		{"another previous version", []clientv3.WatchResponse{
			put("a=1@2,2", ""), put("a=2@2,3", "a=1@2,2"), put("a=3@2,4", "a=1@2,2"),
		}, "previous version"},
		{"created twice", []clientv3.WatchResponse{put("a=1@2,2", ""), put("a=1@3,3", "")}, "created at 3 over"},
		{"an event missing", []clientv3.WatchResponse{put("a=3@2,4", "a=2@2,3")}, "previous version"},
		{"an event twice", []clientv3.WatchResponse{put("a=1@2,2", ""), put("a=1@2,2", "")}, "after 2 was complete"},
		{"an event after its progress", []clientv3.WatchResponse{progress(5), put("a=1@4,4", "")}, "after 5 was complete"},
		{"progress decreases", []clientv3.WatchResponse{progress(5), progress(4)}, "progress at 4 after 5"},
		{"a delete of nothing", []clientv3.WatchResponse{gone("a=@0,4", "a=1@2,2")}, "previous version"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var faults []string
			c := newCache(nil, "/", func(format string, args ...any) {
				faults = append(faults, fmt.Sprintf(format, args...))
			})
			for _, response := range row.responses {
				c.apply(response)
			}
			if all := strings.Join(faults, "; "); (row.fault == "") != (all == "") || !strings.Contains(all, row.fault) {
				t.Errorf("faults %q, want %q", all, row.fault)
			}
		})
	}
}
