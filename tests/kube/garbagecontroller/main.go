// Runs Kubernetes' garbage collector, the part of kube-controller-manager with which Vigil's own is compared, until its
// standard input ends.
//
//	garbagecontroller URL TOKEN
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	workers    = 4
	syncPeriod = time.Second // kube-controller-manager has 30 s
)

func run(ctx context.Context, url, token string) error {
	config := &rest.Config{Host: url, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config)))
	shared := informers.NewSharedInformerFactory(client, 0)
	metadataShared := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper,
		garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(shared, metadataShared), started)
	if err != nil {
		return err
	}
	go collector.Run(ctx, workers, 30*time.Second)
	go collector.Sync(ctx, client.Discovery(), syncPeriod)
	shared.Start(ctx.Done())
	metadataShared.Start(ctx.Done())
	close(started)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
