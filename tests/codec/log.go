package main

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	_ "go.etcd.io/etcd/server/v3/etcdserver/api/snap/snappb"
	_ "go.etcd.io/etcd/server/v3/lease/leasepb"
	_ "go.etcd.io/etcd/server/v3/storage/wal/walpb"
	_ "go.etcd.io/raft/v3/raftpb"
)

// The messages of etcd's files have names of our own, because those of etcd come from many packages, and leave out fields that are
// not needed. Requests of the v2 API are not here: etcd 3.7 has no types for them.
var logNames = map[string]string{
	"raftlog.LogRecord": "walpb.Record", "raftlog.LogSnapshot": "walpb.Snapshot", "raftlog.LogMetadata": "etcdserverpb.Metadata",
	"raftlog.LogEntry": "raftpb.Entry", "raftlog.LogConfChange": "raftpb.ConfChange", "raftlog.HardState": "raftpb.HardState",
	"raftlog.LogRequestHeader": "etcdserverpb.RequestHeader", "raftlog.LogRequest": "etcdserverpb.InternalRaftRequest",
	"raftlog.SnapshotFile": "snappb.snapshot", "raftlog.RaftSnapshotMetadata": "raftpb.SnapshotMetadata",
	"raftlog.RaftSnapshot": "raftpb.Snapshot", "raftlog.StoredLease": "leasepb.Lease",
}

// The numbers of the fields that our messages have, by the messages' names.
type fieldNumbers map[string]map[protoreflect.FieldNumber]bool

func numbersOf(tables []string) fieldNumbers {
	found := fieldNumbers{}
	for _, line := range tables {
		var name string
		var number protoreflect.FieldNumber
		if _, err := fmt.Sscanf(line, "field %s %d", &name, &number); err != nil {
			continue
		}
		if found[name] == nil {
			found[name] = map[protoreflect.FieldNumber]bool{}
		}
		found[name][number] = true
	}
	return found
}

// Removes what ours cannot hold: fields that it leaves out, and the difference between a zero and none.
func (numbers fieldNumbers) reduce(name string, message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		left := numbers[name] != nil && !numbers[name][field.Number()]
		if left || field.Message() == nil && !field.IsList() && value.Equal(field.Default()) {
			message.Clear(field)
		} else if field.Message() != nil && !field.IsList() {
			numbers.reduce(ourName(string(field.Message().FullName())), value.Message())
		}
		return true
	})
}

func ourName(theirs string) string {
	for ours, name := range logNames {
		if name == theirs {
			return ours
		}
	}
	return theirs
}

// Ours reads what etcd has written to its files, and keeps all of it that it has fields for.
func logTest(name string, kind protoreflect.MessageType, message proto.Message, numbers fieldNumbers) test {
	sent := encode(message)
	numbers.reduce(name, message.ProtoReflect())
	return test{name, kind, sent, func(a answer) string {
		got := decode(kind, a.bytes)
		if !a.ok || got == nil {
			return "refused"
		}
		numbers.reduce(name, got.ProtoReflect())
		if !proto.Equal(got, message) {
			return fmt.Sprintf("read as %v, by Go as %v", got, message)
		}
		return ""
	}}
}
