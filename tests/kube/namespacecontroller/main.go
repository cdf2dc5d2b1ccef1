// Runs one pass of Kubernetes' namespace controller over a namespace that is being deleted. The controller is not part of
// a kube-apiserver; Vigil empties namespaces itself.
//
//	namespacecontroller URL TOKEN NAMESPACE
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

func empty(url, token, namespace string) error {
	config := &rest.Config{Host: url, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	deleter := deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), metadataClient, client.CoreV1(),
		client.Discovery().ServerPreferredNamespacedResources, core.FinalizerKubernetes)
	err = deleter.Delete(ctx, namespace)
	var remaining *deletion.ResourcesRemainingError
	if errors.As(err, &remaining) {
		return nil // as expected while finalizers hold objects
	}
	return err
}

func main() {
	if err := empty(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
