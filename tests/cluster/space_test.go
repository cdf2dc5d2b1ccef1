package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

// A cluster that is out of space refuses writes with etcd's text, while reads and watches continue;
// after a compaction, a defragmentation of each member and the end of the alarm it accepts them again.
func TestOutOfSpace(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		const quota = 4 << 20
		f := newFixture(t, harness.ClusterOptions{Binary: binary,
			Args: []string{"--quota-backend-bytes", fmt.Sprint(quota)}}, harness.FrontOptions{})
		value := strings.Repeat("v", 256<<10)
		first := f.put(f.via, "k", value)
		last := first
		events := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
		var err error
		for err == nil {
			var answer *clientv3.PutResponse
			if answer, err = f.via.Put(f.ctx, "k", value); err == nil {
				last = answer.Header.Revision
			}
			if last-first > 10*quota/int64(len(value)) {
				t.Fatal("the cluster is never full")
			}
		}
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("a put without space: %v", err)
		}
		_, direct := f.direct.Put(f.ctx, "k", value)
		f.wantSame("a put without space", err, direct)
		f.follow(events, first, last)
		// etcd may have applied the put that it refused.
		answer, err := f.via.Get(f.ctx, "k")
		f.must(err)
		same, err := f.direct.Get(f.ctx, "k")
		f.must(err)
		f.wantSame("a read without space", answer.Kvs[0].ModRevision, same.Kvs[0].ModRevision)

		_, err = f.via.Delete(f.ctx, "k")
		f.must(err)
		_, err = f.via.Compact(f.ctx, answer.Header.Revision, clientv3.WithCompactPhysical())
		f.must(err)
		for _, member := range f.cluster.Members {
			_, err := f.direct.Defragment(f.ctx, member.URL)
			f.must(err)
		}
		alarms, err := f.via.AlarmList(f.ctx)
		f.must(err)
		if len(alarms.Alarms) == 0 {
			t.Error("no alarm is shown")
		}
		if harness.IsVigil() {
			f.awaitPage(f.front.URL+"/health", 503, `"reason":"ALARM NOSPACE"`)
			f.awaitPage(f.front.URL+"/health?exclude=NOSPACE", 200, "true")
		}
		_, err = f.via.AlarmDisarm(f.ctx, &clientv3.AlarmMember{})
		f.must(err)
		f.eventually("a put", func() bool {
			_, err := f.via.Put(f.ctx, "after", "1")
			return err == nil
		})
		if harness.IsVigil() {
			f.awaitPage(f.front.URL+"/health", 200, "true")
		}
	})
}

// Defragmentation through the front is one of the member that gets the call. Watches and reads continue.
func TestDefragmentThroughTheFront(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := newPlain(t, binary)
		first := f.put(f.via, "k", "1")
		events := f.via.Watch(f.ctx, "k", clientv3.WithRev(first))
		begin := time.Now()
		_, err := f.via.Defragment(f.ctx, f.front.URL)
		f.must(err)
		f.Logf("took %v", time.Since(begin))
		f.follow(events, first, f.put(f.via, "k", "2"))
	})
}
