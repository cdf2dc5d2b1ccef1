package migration

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// madeDir is a data directory that the test makes; its log is written by etcd's own package.
type madeDir struct {
	*testing.T
	dir string
	log *wal.WAL
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeDir makes a directory whose file has the applied index and the number of members.
func makeDir(t *testing.T, index uint64, members int) *madeDir {
	t.Helper()
	m := &madeDir{T: t, dir: filepath.Join(t.TempDir(), "etcd")}
	must(t, os.MkdirAll(filepath.Join(m.dir, "member", "snap"), 0o700))
	db, err := bbolt.Open(filepath.Join(m.dir, "member", "snap", "db"), 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta", "members"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		for i := range members {
			must(t, tx.Bucket([]byte("members")).Put(fmt.Appendf(nil, "%016x", i+1), []byte("{}")))
		}
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, index))
	}))
	must(t, db.Close())
	metadata, err := proto.Marshal(&pb.Metadata{NodeID: proto.Uint64(1), ClusterID: proto.Uint64(9)})
	must(t, err)
	m.log, err = wal.Create(zap.NewNop(), filepath.Join(m.dir, "member", "wal"), metadata)
	must(t, err)
	return m
}

// save writes one entry that puts a key, and the commit index at that time.
func (m *madeDir) save(term, index, commit uint64, key string, value []byte) {
	m.Helper()
	data, err := proto.Marshal(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: value}})
	must(m.T, err)
	must(m.T, m.log.Save(&raftpb.HardState{Term: &term, Commit: &commit},
		[]*raftpb.Entry{{Term: &term, Index: &index, Data: data}}))
}

func (m *madeDir) importIt() summary {
	m.Helper()
	return importInto(m.T, filepath.Join(m.TempDir(), "data"), m.dir)
}

func TestUncommittedEntries(t *testing.T) {
	for members, want := range map[int]int64{1: 10, 3: 6} {
		m := makeDir(t, 0, members)
		for i := range uint64(10) {
			m.save(2, i+1, min(i, 6), fmt.Sprint(i), nil)
		}
		must(t, m.log.Close())
		if s := m.importIt(); s.LogEntries != want || s.Revision != want+1 || s.ClusterID != "9" {
			t.Errorf("%d members: %+v", members, s)
		}
	}
}

func TestReplacedEntriesAreNotApplied(t *testing.T) {
	m := makeDir(t, 2, 1)
	for i := range uint64(8) {
		m.save(2, i+1, 0, fmt.Sprint("lost ", i), nil)
	}
	m.save(3, 5, 0, "new", nil) // replaces the entries 5 to 8
	m.save(3, 6, 6, "newer", nil)
	must(t, m.log.Close())
	if s := m.importIt(); s.LogEntries != 4 || s.Keys != 4 || s.Revision != 5 {
		t.Errorf("%+v", s)
	}
}

func TestLogOfManyFiles(t *testing.T) {
	wal.SegmentSizeBytes = 16 << 10
	defer func() { wal.SegmentSizeBytes = 64 * 1000 * 1000 }()
	const entries, applied = 100, 37
	m := makeDir(t, applied, 1)
	for i := range uint64(entries) {
		m.save(2, i+1, i, fmt.Sprint(i), make([]byte, 1000))
	}
	must(t, m.log.Close())
	logs, err := filepath.Glob(filepath.Join(m.dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) < 6 {
		t.Fatal(logs, err)
	}
	if s := m.importIt(); s.LogEntries != entries-applied {
		t.Errorf("%+v", s)
	}
	dir := filepath.Join(t.TempDir(), "data")
	last, middle := logs[len(logs)-1], logs[len(logs)-2]
	bytes, err := os.ReadFile(middle)
	must(t, err)

	// Only the last file may have a torn end.
	must(t, os.WriteFile(middle, bytes[:9000], 0o600))
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, middle, "past the end of the file")
	must(t, os.Remove(middle))
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, "is missing")
	must(t, os.WriteFile(middle, bytes, 0o600))

	// The last file must follow the one before it.
	other, err := os.ReadFile(logs[len(logs)-3])
	must(t, err)
	must(t, os.WriteFile(last, other, 0o600))
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, last, "does not follow")

	// The log must have everything that is not in the file.
	for _, log := range logs[:2] {
		must(t, os.Remove(log))
	}
	must(t, os.WriteFile(last, nil, 0o600))
	if s := m.importIt(); s.LogEntries == 0 {
		t.Errorf("%+v", s)
	}
	for _, log := range logs[2 : len(logs)-2] {
		must(t, os.Remove(log))
	}
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, "does not go back far enough", "use a snapshot")
}

// lengthAt returns the offset of the frame of the record with these bytes, which begins with its length.
func lengthAt(t *testing.T, log []byte, data string) int {
	t.Helper()
	found := bytes.Index(log, []byte(data))
	for at := found &^ 7; found > 0 && at >= 0; at -= 8 {
		length := int(binary.LittleEndian.Uint64(log[at:]) & (1<<56 - 1))
		if length > found-at && length < 4096 {
			return at
		}
	}
	t.Fatal("no such record")
	return 0
}

func TestCVE202015106LengthsOfRecordsAreChecked(t *testing.T) {
	for _, length := range []uint64{1 << 20, 1 << 40, 1<<56 - 1, 1<<63 - 1, 1 << 63} {
		m := makeDir(t, 0, 1)
		m.save(2, 1, 0, "first", nil)
		m.save(2, 2, 1, "a key to be found", nil)
		m.save(2, 3, 2, "last", nil)
		must(t, m.log.Close())
		logs, err := filepath.Glob(filepath.Join(m.dir, "member", "wal", "*.wal"))
		must(t, err)
		log, err := os.ReadFile(logs[0])
		must(t, err)
		binary.LittleEndian.PutUint64(log[lengthAt(t, log, "a key to be found"):], length)
		must(t, os.WriteFile(logs[0], log, 0o600))
		// As in etcd: a record that does not fit into the last file is torn.
		if s := m.importIt(); s.LogEntries != 1 || !s.LogTorn {
			t.Errorf("length %#x: %+v", length, s)
		}
	}
}

func TestCVE202015112IndexesOfEntriesAreChecked(t *testing.T) {
	for _, index := range []uint64{4, 1 << 40, 1<<64 - 1} {
		m := makeDir(t, 0, 1)
		m.save(2, 1, 0, "first", nil)
		m.save(2, 2, 1, "second", nil)
		m.save(2, index, 2, "third", nil)
		must(t, m.log.Close())
		dir := filepath.Join(t.TempDir(), "data")
		refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, "entry")
	}
}

func TestImpossibleEntriesAreRefused(t *testing.T) {
	m := makeDir(t, 0, 1)
	term, index := uint64(2), uint64(1)
	data, err := proto.Marshal(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: []*pb.RequestOp{{}}}})
	must(t, err)
	must(t, m.log.Save(&raftpb.HardState{Term: &term, Commit: &index},
		[]*raftpb.Entry{{Term: &term, Index: &index, Data: data}}))
	must(t, m.log.Close())
	dir := filepath.Join(t.TempDir(), "data")
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, "index 1", "no etcd up to 3.7 writes")
}

func TestEntriesPastALimitAreReported(t *testing.T) {
	m := makeDir(t, 0, 1)
	term, index := uint64(2), uint64(1)
	data, err := proto.Marshal(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{
		Name: strings.Repeat("n", 501), Options: &authpb.UserAddOptions{NoPassword: true}}})
	must(t, err)
	must(t, m.log.Save(&raftpb.HardState{Term: &term, Commit: &index},
		[]*raftpb.Entry{{Term: &term, Index: &index, Data: data}}))
	must(t, m.log.Close())
	dir := filepath.Join(t.TempDir(), "data")
	refused(t, dir, []string{"import", "--data-dir", dir, m.dir}, "index 1", "larger than Vigil takes")
}

// When the quota is exceeded, etcd refuses puts. Before 3.7 it did not check nested transactions, and the
// puts that it accepted must be imported.
func TestNestedPutsOfAFullEtcdFollowItsVersion(t *testing.T) {
	for version, keys := range map[string]int64{"": 1, "3.6.0": 1, "3.7.0": 0} {
		m := makeDir(t, 0, 1)
		db, err := bbolt.Open(filepath.Join(m.dir, "member", "snap", "db"), 0o600, nil)
		must(t, err)
		must(t, db.Update(func(tx *bbolt.Tx) error {
			alarms, err := tx.CreateBucket([]byte("alarm"))
			must(t, err)
			alarm, err := proto.Marshal(&pb.AlarmMember{MemberID: 1, Alarm: pb.AlarmType_NOSPACE})
			must(t, err)
			must(t, alarms.Put(alarm, nil))
			if version == "" {
				return nil
			}
			return tx.Bucket([]byte("meta")).Put([]byte("storageVersion"), []byte(version))
		}))
		must(t, db.Close())
		put := []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k")}}}}
		nested := []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: put}}}}
		term := uint64(2)
		for i, ops := range [][]*pb.RequestOp{put, nested} {
			index := uint64(i + 1)
			data, err := proto.Marshal(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}})
			must(t, err)
			must(t, m.log.Save(&raftpb.HardState{Term: &term, Commit: &index},
				[]*raftpb.Entry{{Term: &term, Index: &index, Data: data}}))
		}
		must(t, m.log.Close())
		if s := m.importIt(); s.Keys != keys || s.LogEntries != keys || s.LogEntriesRefused != 2-keys {
			t.Errorf("%q: %+v", version, s)
		}
	}
}
