package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"vigil/tests/harness"
)

// What a server may say of itself, although no server is so.
var hostileStatus = map[string]*pb.StatusResponse{
	"nothing": {},
	"largest numbers": {Header: &pb.ResponseHeader{ClusterId: math.MaxUint64, MemberId: math.MaxUint64, Revision: math.MaxInt64},
		DbSize: math.MaxInt64, DbSizeInUse: math.MaxInt64, DbSizeQuota: math.MaxInt64, Leader: math.MaxUint64,
		RaftIndex: math.MaxUint64, RaftTerm: math.MaxUint64, RaftAppliedIndex: math.MaxUint64},
	"smallest numbers": {Header: &pb.ResponseHeader{Revision: math.MinInt64},
		DbSize: math.MinInt64, DbSizeInUse: math.MinInt64, DbSizeQuota: math.MinInt64},
	"more used than there is": {DbSize: 1, DbSizeInUse: math.MaxInt64 / 100},
	"a negative size":         {DbSize: -1, DbSizeInUse: math.MaxInt64, DbSizeQuota: -1},
	"control characters": {Version: "3.7\x1b[2J\x1b]0;t\x07\r\n\x00\x7f", StorageVersion: "\x1b[31m",
		Errors: []string{"\x1b[2J", "a\nb", "\x00"}, DowngradeInfo: &pb.DowngradeInfo{Enabled: true, TargetVersion: "\u009b31m\x1b[H"}},
	"long texts":          {Version: strings.Repeat("9", 1<<20), Errors: []string{strings.Repeat("e", 1<<20)}},
	"thousands of errors": {Errors: strings.Split(strings.Repeat("an error,", 100_000), ",")},
}

// A command that shows what servers say survives everything that they say, and passes nothing on to the terminal
// that controls it.
func TestEndpointStatusOfHostileServers(t *testing.T) {
	t.Parallel()
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{})
	changer := harness.StartChanger(t, f.cluster.Members[0].Addr)
	for name, status := range hostileStatus {
		answer, err := proto.Marshal(status)
		f.must(err)
		changer.Set(func(method string, _, original []byte) []byte {
			if method == pb.Maintenance_Status_FullMethodName {
				return answer
			}
			return original
		})
		for _, args := range []string{"-w simple", "-w table", "-w fields", "-w json", "--cluster=false"} {
			f.wantTame(name, changer.Addr, args)
		}
	}
	changer.Set(func(_ string, _, original []byte) []byte { return append(original, 0xff, 0xff, 0xff) })
	f.wantTame("a malformed answer", changer.Addr, "-w table")
}

// wantTame runs the command, whose exit code may be any.
func (f *fixture) wantTame(name, addr, args string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, harness.Subject(), append([]string{"endpoint", "status", "--endpoints", addr},
		strings.Fields(args)...)...)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.Errorf("%s, %s: %v", name, args, err)
	} else if exit != nil && !exit.Exited() || bytes.Contains(text, []byte("Sanitizer")) || bytes.Contains(text, []byte("runtime error")) {
		f.Errorf("%s, %s: %v\n%.2000s", name, args, err, text)
	}
	if len(text) > 4<<20 {
		f.Errorf("%s, %s: %d bytes", name, args, len(text))
	}
	for at, c := range text {
		if c < ' ' && c != '\n' || c == 0x7f && !strings.Contains(args, "json") {
			f.Errorf("%s, %s: a control character: %s", name, args, fmt.Sprintf("%q", text[max(0, at-40):min(len(text), at+40)]))
			break
		}
	}
}
