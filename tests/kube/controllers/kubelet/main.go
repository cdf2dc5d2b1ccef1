// A stub of many kubelets. It registers nodes, renews their leases, and reports that the pods of these nodes run: no
// container is ever started. It ends when its standard input ends.
//
//	kubelet -kubeconfig FILE -nodes N
//
// Like a kubelet, it removes a pod that is to be deleted after it has reported the end of its containers. A pod with the
// annotation example.com/exit ends by itself, with the code that the annotation gives.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const parallel = 32 // requests at a time

// kubelets are the kubelets of all nodes.
type kubelets struct {
	client kubernetes.Interface
	nodes  map[string]*core.Node // by name
}

func newKubelets(config *rest.Config, count int) (*kubelets, error) {
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	k := &kubelets{client, make(map[string]*core.Node, count)}
	for i := range count {
		node := newNode(i)
		k.nodes[node.Name] = node
	}
	return k, nil
}

// forEachNode calls do for all nodes, some at a time, and returns the first error.
func (k *kubelets) forEachNode(do func(*core.Node) error) error {
	var wait sync.WaitGroup
	turns := make(chan struct{}, parallel)
	failures := make(chan error, len(k.nodes))
	for _, node := range k.nodes {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if err := do(node); err != nil {
				failures <- err
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

// keepLeases renews all leases until the context ends.
func (k *kubelets) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := k.forEachNode(func(node *core.Node) error { return k.renewLease(ctx, node.Name) })
			if err != nil {
				fmt.Fprintln(os.Stderr, "lease:", err)
			}
		}
	}
}

func run(ctx context.Context, path string, count int) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	k, err := newKubelets(config, count)
	if err != nil {
		return err
	}
	if err := k.forEachNode(func(node *core.Node) error { return k.register(ctx, node) }); err != nil {
		return err
	}
	go k.keepLeases(ctx)
	if err := k.watchPods(ctx); err != nil {
		return err
	}
	fmt.Println("registered", len(k.nodes))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func now() meta.Time { return meta.NewTime(time.Now()) }

func main() {
	path := flag.String("kubeconfig", "", "how to reach the API server")
	count := flag.Int("nodes", 1, "how many nodes to register")
	flag.Parse()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := run(ctx, *path, *count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
