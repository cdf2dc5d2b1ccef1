package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

const page = 4096

// fill puts pages until the quota is exceeded.
func (f *fixture) fill() {
	f.Helper()
	for i := range 100 {
		_, err := f.client.Put(f.ctx, "key", strings.Repeat("x", page))
		if err != nil {
			f.wantError(err, rpctypes.ErrNoSpace)
			want(f, "some fit", i > 3, true)
			return
		}
		if harness.IsEtcd(harness.Subject()) {
			time.Sleep(120 * time.Millisecond) // etcd updates its size when it commits
		}
	}
	f.Fatal("the quota was never exceeded")
}

func (f *fixture) status() *clientv3.StatusResponse {
	f.Helper()
	s, err := f.client.Status(f.ctx, f.server.Addr)
	f.must(err)
	return s
}

func (f *fixture) alarms() []*pb.AlarmMember {
	f.Helper()
	r, err := f.client.AlarmList(f.ctx)
	f.must(err)
	return r.Alarms
}

func TestQuotaAndRecovery(t *testing.T) {
	harness.OnlyAlone(t, "the health of Vigil shows alarms of members some seconds later")
	f := newFixture(t, "--quota-backend-bytes", fmt.Sprint(16*page))
	want(f, "quota", f.status().DbSizeQuota, 16*page)
	f.fill()
	member := f.status().Header.MemberId
	alarms := f.alarms()
	want(f, "alarms", len(alarms), 1)
	want(f, "member", alarms[0].MemberID, member)
	want(f, "type", alarms[0].Alarm, pb.AlarmType_NOSPACE)
	want(f, "status", strings.Join(f.status().Errors, ","), fmt.Sprintf("memberID:%d alarm:NOSPACE", member))
	code, body, _ := f.http("/health")
	want(f, "health", code, http.StatusServiceUnavailable)
	want(f, "reason", strings.TrimSpace(body), `{"health":"false","reason":"ALARM NOSPACE"}`)
	code, _, _ = f.http("/health?exclude=NOSPACE")
	want(f, "health without it", code, http.StatusOK)

	_, err := f.client.Grant(f.ctx, 60)
	f.wantError(err, rpctypes.ErrNoSpace)
	_, err = f.client.Txn(f.ctx).Else(clientv3.OpPut("a", "b")).Commit()
	f.wantError(err, rpctypes.ErrNoSpace)
	_, err = f.client.Txn(f.ctx).Then(clientv3.OpGet("key"), clientv3.OpDelete("none")).Commit()
	f.must(err)
	f.delete("key")

	f.compact(f.revision())
	_, err = f.client.Defragment(f.ctx, f.server.Addr)
	f.must(err)
	_, err = f.client.Put(f.ctx, "a", "b")
	f.wantError(err, rpctypes.ErrNoSpace)
	disarmed, err := f.client.AlarmDisarm(f.ctx, &clientv3.AlarmMember{})
	f.must(err)
	want(f, "disarmed", len(disarmed.Alarms), 1)
	want(f, "alarms left", len(f.alarms()), 0)
	f.put("a", "b")
	f.fill()
}

func TestAlarmsSurviveARestart(t *testing.T) {
	harness.OnlyAlone(t, "the health of Vigil shows alarms of members some seconds later")
	f := newFixture(t)
	raw := pb.NewMaintenanceClient(f.raw())
	_, err := raw.Alarm(f.ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: 5, Alarm: pb.AlarmType_CORRUPT})
	f.must(err)
	_, err = f.client.Put(f.ctx, "a", "b")
	f.wantError(err, rpctypes.ErrCorrupt)
	f.server.Kill()
	f = fixtureOn(t, harness.Start(t, harness.Options{Dir: f.server.Dir, Port: f.server.Options.Port}))
	_, err = f.client.Put(f.ctx, "a", "b")
	f.wantError(err, rpctypes.ErrCorrupt)
	want(f, "alarms", len(f.alarms()), 1)
	code, _, _ := f.http("/readyz")
	want(f, "ready", code, http.StatusServiceUnavailable)
	_, err = f.client.AlarmDisarm(f.ctx, &clientv3.AlarmMember{MemberID: 5, Alarm: pb.AlarmType_CORRUPT})
	f.must(err)
	f.put("a", "b")
}

func TestHashKVIsUnchangedByCompactionAndDefragment(t *testing.T) {
	f := newFixture(t)
	for i := range 200 {
		f.put(fmt.Sprint("k", i%7), fmt.Sprint(i))
	}
	f.compact(150)
	before, err := f.client.HashKV(f.ctx, f.server.Addr, 180)
	f.must(err)
	_, err = f.client.Defragment(f.ctx, f.server.Addr)
	f.must(err)
	after, err := f.client.HashKV(f.ctx, f.server.Addr, 180)
	f.must(err)
	want(f, "hash", after.Hash, before.Hash)
	want(f, "compacted", after.CompactRevision, 150)
}

func TestMoveLeaderAndDowngrade(t *testing.T) {
	f := newFixture(t)
	f.awaitStorageVersion()
	_, err := f.client.MoveLeader(f.ctx, f.status().Leader)
	f.must(err)
	_, err = f.client.MoveLeader(f.ctx, 1)
	f.wantError(err, rpctypes.ErrBadLeaderTransferee)
	_, err = f.client.Downgrade(f.ctx, clientv3.DowngradeValidate, "3.4")
	f.wantError(err, rpctypes.ErrInvalidDowngradeTargetVersion)
	_, err = f.client.Downgrade(f.ctx, clientv3.DowngradeValidate, "v3")
	f.wantError(err, rpctypes.ErrWrongDowngradeVersionFormat)
	r, err := f.client.Downgrade(f.ctx, clientv3.DowngradeEnable, "3.6")
	f.must(err)
	want(f, "version", r.Version, "3.7")
	want(f, "enabled", f.status().DowngradeInfo.Enabled, true)
	want(f, "target", f.status().DowngradeInfo.TargetVersion, "3.6.0")
	_, err = f.client.Downgrade(f.ctx, clientv3.DowngradeEnable, "3.6")
	if !errors.Is(err, rpctypes.ErrInvalidDowngradeTargetVersion) { // after a real etcd has changed its version
		f.wantError(err, rpctypes.ErrDowngradeInProcess)
	}
	_, err = f.client.Downgrade(f.ctx, clientv3.DowngradeCancel, "")
	f.must(err)
	want(f, "enabled", f.status().DowngradeInfo.Enabled, false)
}

func TestHistoryIsCompactedAutomatically(t *testing.T) {
	f := newFixture(t, "--auto-compaction-retention", "1s")
	first := f.put("a", "1").Header.Revision
	for {
		f.put("a", "2")
		_, err := f.client.Get(f.ctx, "a", clientv3.WithRev(first))
		if err != nil {
			f.wantError(err, rpctypes.ErrCompacted)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
