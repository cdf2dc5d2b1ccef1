package cluster

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"vigil/tests/harness"
)

// attack makes calls until the context ends. It has a connection of its own.
type attack func(f *fixture, ctx context.Context, conn *grpc.ClientConn, random *rand.Rand)

var attacks = map[string]attack{
	"snapshots that are not read": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, _ *rand.Rand) {
		pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
		<-ctx.Done()
	},
	"lists of an old revision that are not read": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, _ *rand.Rand) {
		for range 8 {
			description := grpc.StreamDesc{ServerStreams: true}
			stream, err := conn.NewStream(ctx, &description, "/etcdserverpb.KV/Range")
			if err == nil {
				stream.SendMsg(&pb.RangeRequest{Key: []byte("long"), Revision: 2})
				stream.CloseSend()
			}
		}
		<-ctx.Done()
	},
	"calls that are never completed": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, _ *rand.Rand) {
		paths := []string{"KV/Put", "KV/Range", "Watch/Watch", "Lease/LeaseKeepAlive", "KV/Txn", "Maintenance/Snapshot"}
		for i := range 1000 {
			description := grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
			conn.NewStream(ctx, &description, "/etcdserverpb."+paths[i%len(paths)])
		}
		<-ctx.Done()
	},
	"calls that are canceled": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) {
		for ctx.Err() == nil {
			call, cancel := context.WithTimeout(ctx, time.Duration(random.Intn(2000))*time.Microsecond)
			kv := pb.NewKVClient(conn)
			switch random.Intn(4) {
			case 0:
				kv.Range(call, &pb.RangeRequest{Key: []byte("k")})
			case 1:
				kv.Range(call, &pb.RangeRequest{Key: []byte("long"), Revision: 2})
			case 2:
				kv.Put(call, &pb.PutRequest{Key: []byte("canceled"), Value: make([]byte, 100)})
			default:
				pb.NewMaintenanceClient(conn).Status(call, &pb.StatusRequest{})
			}
			cancel()
		}
	},
	"large metadata": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) {
		for ctx.Err() == nil {
			long := strings.Repeat("x", 1<<random.Intn(16))
			call := metadata.AppendToOutgoingContext(ctx, "token", long, "other", long)
			pb.NewKVClient(conn).Range(call, &pb.RangeRequest{Key: []byte("k")})
			pb.NewKVClient(conn).Put(call, &pb.PutRequest{Key: []byte("large")})
		}
	},
	"a token for each call": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) {
		for ctx.Err() == nil {
			call := metadata.AppendToOutgoingContext(ctx, "token", fmt.Sprintf("anna.%d", random.Int63()))
			pb.NewKVClient(conn).Range(call, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
			stream, err := pb.NewLeaseClient(conn).LeaseKeepAlive(call)
			if err == nil {
				stream.Send(&pb.LeaseKeepAliveRequest{ID: random.Int63()})
				stream.Recv()
			}
		}
	},
	"watches that come and go": func(f *fixture, ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) {
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err != nil {
			return
		}
		go func() {
			for err := error(nil); err == nil; {
				_, err = stream.Recv()
			}
		}()
		for id := int64(1); ctx.Err() == nil; id++ {
			create := &pb.WatchCreateRequest{Key: []byte("k"), StartRevision: int64(random.Intn(50)), WatchId: id}
			stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}})
			cancel := &pb.WatchCancelRequest{WatchId: id}
			if stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: cancel}}) != nil {
				return
			}
		}
	},
}

// While clients attack a front, another one reads, writes, watches and renews a lease.
func TestAttacksStopNoOthers(t *testing.T) {
	if testing.Short() || !harness.IsVigil() {
		t.Skip("about the front's own limits")
	}
	const attackers, rounds, slowest = 4, 20, 20 * time.Second
	for name, run := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, harness.ClusterOptions{}, harness.FrontOptions{})
			f.put(f.direct, "long", strings.Repeat("v", 1<<20))
			f.awaitRevision(f.via, 2)
			before := f.peakMiB()
			ctx, stop := context.WithCancel(f.ctx)
			var group sync.WaitGroup
			for i := range attackers {
				conn := f.dial(f.front.Addr)
				group.Add(1)
				go func() {
					defer group.Done()
					run(f, ctx, conn, rand.New(rand.NewSource(int64(i))))
				}()
			}
			lease, err := f.via.Grant(f.ctx, 600)
			f.must(err)
			events := f.via.Watch(f.ctx, "k")
			worst := time.Duration(0)
			for i := range rounds {
				began := time.Now()
				revision := f.put(f.via, "k", strconv.Itoa(i))
				answer, err := f.via.Get(f.ctx, "k")
				f.must(err)
				if got := string(answer.Kvs[0].Value); got != strconv.Itoa(i) {
					t.Fatalf("read %s after %d was written", got, i)
				}
				_, err = f.via.KeepAliveOnce(f.ctx, lease.ID)
				f.must(err)
				f.await(events, revision)
				worst = max(worst, time.Since(began))
			}
			stop()
			group.Wait()
			t.Logf("the slowest round took %v; memory %d MiB before and %d MiB at most", worst, before, f.peakMiB())
			if worst > slowest {
				t.Errorf("a round took %v", worst)
			}
		})
	}
}

// await reads a watch until it has an event of a revision.
func (f *fixture) await(events clientv3.WatchChan, revision int64) {
	f.Helper()
	for {
		select {
		case answer := <-events:
			f.must(answer.Err())
			if n := len(answer.Events); n > 0 && answer.Events[n-1].Kv.ModRevision >= revision {
				return
			}
		case <-f.ctx.Done():
			f.Fatalf("waited for the event at %d", revision)
		}
	}
}

// badServers are what a front may find instead of a member.
var badServers = map[string]func(conn net.Conn, random *rand.Rand){
	"never answers": func(conn net.Conn, _ *rand.Rand) { io.Copy(io.Discard, conn) },
	"closes":        func(conn net.Conn, _ *rand.Rand) {},
	"random bytes": func(conn net.Conn, random *rand.Rand) {
		io.CopyN(conn, random, 1<<16)
	},
	"random frames": func(conn net.Conn, random *rand.Rand) {
		conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
		for range 1000 {
			length := random.Intn(64)
			frame := []byte{0, 0, byte(length), byte(random.Intn(10)), byte(random.Intn(256)), 0, 0, 0, byte(random.Intn(8))}
			body := make([]byte, length)
			random.Read(body)
			if _, err := conn.Write(append(frame, body...)); err != nil {
				return
			}
		}
	},
	"another protocol": func(conn net.Conn, _ *rand.Rand) {
		io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
	},
}

// Something that is not an etcd server answers instead of a member: the front continues at others, or as soon as the
// member is back, and what it has in its mirror is right.
func TestServersThatAreNotMembers(t *testing.T) {
	if testing.Short() || !harness.IsVigil() {
		t.Skip("about the front's own client")
	}
	for name, serve := range badServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			f.must(err)
			t.Cleanup(func() { listener.Close() })
			go func() {
				for seed := int64(0); ; seed++ {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						serve(conn, rand.New(rand.NewSource(seed)))
					}()
				}
			}()
			member := f.cluster.Members[0]
			for i := range 2 {
				member.Relay.Redirect(listener.Addr().String())
				ctx, cancel := context.WithTimeout(f.ctx, time.Second)
				if _, err := f.via.Put(ctx, "k", "lost"); err == nil {
					t.Error("a put was acknowledged")
				}
				cancel()
				member.Relay.Redirect(member.Addr)
				f.eventually("a put", func() bool {
					ctx, cancel := context.WithTimeout(f.ctx, time.Second)
					defer cancel()
					_, err := f.via.Put(ctx, "k", strconv.Itoa(i))
					return err == nil
				})
				answer, err := f.via.Get(f.ctx, "k")
				f.must(err)
				f.wantSame("the value", string(answer.Kvs[0].Value), strconv.Itoa(i))
			}
		})
	}
}
