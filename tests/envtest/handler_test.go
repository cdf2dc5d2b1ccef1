package envtest

import (
	core "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// handler sends the names of config maps that are added.
func handler(seen chan<- string) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if m, ok := object.(*core.ConfigMap); ok {
			seen <- m.Name
		}
	}}
}
