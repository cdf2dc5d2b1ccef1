package cluster

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"vigil/tests/harness"
)

const kubeDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// newChanged is a cluster of one member whose answers to the front can be changed.
func newChanged(t *testing.T, args ...string) (*fixture, *harness.Changer) {
	t.Helper()
	t.Parallel()
	f := newFixture(t, harness.ClusterOptions{Size: 1}, harness.FrontOptions{Args: args})
	changer := harness.StartChanger(t, f.cluster.Members[0].Addr)
	f.cluster.Members[0].Relay.Redirect(changer.Addr)
	f.cluster.Members[0].Relay.CutAll()
	f.awaitEqual()
	return f, changer
}

// wantAlive expects that the front has not ended.
func (f *fixture) wantAlive() {
	f.Helper()
	select {
	case <-f.front.Exited():
		f.Fatal("the front has ended")
	default:
	}
}

// Keys that were not requested reach no client, and not the Kubernetes API either, which would look
// for its prefix in them.
func TestKeysThatWereNotRequested(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f, changer := newChanged(t, "--listen-kube-urls", kube)
	f.awaitPage(kube+"/api/v1/namespaces/default", 200, "default")
	if code, text := page(kube + kubeDefinitions); code != 200 {
		t.Fatalf("%s is %d %s", kubeDefinitions, code, text)
	}
	changer.Set(func(method string, _, answer []byte) []byte {
		var response pb.RangeResponse
		if method == pb.Watch_Watch_FullMethodName {
			time.Sleep(5 * time.Second) // so that the mirror is late, and reads are forwarded
		}
		if method != pb.KV_Range_FullMethodName || proto.Unmarshal(answer, &response) != nil {
			return answer
		}
		for _, kv := range response.Kvs {
			kv.Key = []byte("x")
		}
		answer, _ = proto.Marshal(&response)
		return answer
	})
	f.put(f.direct, "k", "v")
	for _, path := range []string{kubeDefinitions, "/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/pods"} {
		code, text := page(kube + path)
		if code == 0 || strings.Contains(text, `"name":"default"`) {
			t.Errorf("%s is %d %s", path, code, text)
		}
	}
	if answer, err := f.via.Get(f.ctx, "k"); err == nil {
		t.Errorf("a read of k was answered with %v", answer.Kvs)
	}
	f.wantAlive()
	changer.Set(nil)
	f.awaitPage(kube+"/api/v1/namespaces/default", 200, "default")
}

// One answer with a revision that the cluster does not have must not make the mirror late for ever.
func TestRevisionFromTheFuture(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	for name, revision := range map[string]int64{"far": 1 << 61, "last": math.MaxInt64, "first": math.MinInt64} {
		t.Run(name, func(t *testing.T) {
			f, changer := newChanged(t)
			changer.Set(func(method string, _, answer []byte) []byte {
				var response pb.PutResponse
				if method != pb.KV_Put_FullMethodName || proto.Unmarshal(answer, &response) != nil {
					return answer
				}
				response.Header.Revision = revision
				answer, _ = proto.Marshal(&response)
				return answer
			})
			f.put(f.via, "k", "v")
			changer.Set(nil)
			f.awaitPage(f.front.URL+"/readyz", 200, "")
			f.awaitEqual()
			before := f.metric("vigil_cluster_reads_mirrored_total")
			f.eventually("a read of the mirror", func() bool {
				_, err := f.via.Get(f.ctx, "k", clientv3.WithSerializable())
				f.must(err)
				return f.metric("vigil_cluster_reads_mirrored_total") > before
			})
		})
	}
}

// Answers with damaged bytes end calls and connections, and nothing else.
func TestDamagedAnswers(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("about Vigil")
	}
	kube := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort())
	f, changer := newChanged(t, "--listen-kube-urls", kube)
	for n := range 20 {
		f.put(f.direct, fmt.Sprintf("k/%d", n), strings.Repeat("v", n))
	}
	var lock sync.Mutex
	random := rand.New(rand.NewSource(1))
	damaged := 0
	changer.Set(func(_ string, _, answer []byte) []byte {
		lock.Lock()
		defer lock.Unlock()
		if len(answer) == 0 || random.Intn(3) > 0 {
			return answer
		}
		damaged++
		answer = append([]byte{}, answer...)
		for range 1 + random.Intn(2) {
			answer[random.Intn(len(answer))] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(random.Intn(256))}[random.Intn(6)]
		}
		return answer
	})
	until := time.Now().Add(6 * time.Second)
	for n := 0; time.Now().Before(until); n++ {
		ctx, cancel := context.WithTimeout(f.ctx, 300*time.Millisecond)
		key := fmt.Sprintf("k/%d", n%20)
		f.direct.Put(ctx, key, fmt.Sprint(n))
		f.via.Get(ctx, "k/", clientv3.WithPrefix())
		f.via.Get(ctx, key, clientv3.WithSerializable(), clientv3.WithRev(int64(2+n%5)))
		f.via.Txn(ctx).Then(clientv3.OpPut(key, "t", clientv3.WithPrevKV()), clientv3.OpGet(key)).Commit()
		cancel()
		page(kube + []string{"/api/v1/namespaces", kubeDefinitions, "/api/v1/pods?limit=2"}[n%3])
	}
	f.wantAlive()
	changer.Set(nil)
	lock.Lock()
	t.Logf("%d answers were damaged", damaged)
	lock.Unlock()
	f.awaitPage(f.front.URL+"/readyz", 200, "")
	f.awaitEqual()
}
