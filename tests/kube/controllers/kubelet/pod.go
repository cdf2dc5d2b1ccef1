package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// exitAnnotation makes a pod end by itself, with this code.
const exitAnnotation = "example.com/exit"

var addresses atomic.Uint32 // of pods that have been given away

func nextAddress() string {
	n := addresses.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", 128+n/62500, n/addressesOfOne%250, n%addressesOfOne+1)
}

// watchPods follows the pods of all nodes until the context ends. It returns when it has seen those that exist.
func (k *kubelets) watchPods(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTweakListOptions(func(options *meta.ListOptions) {
			options.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}),
		informers.WithTransform(slim))
	informer := factory.Core().V1().Pods().Informer()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the pods could not be listed")
	}
	for range parallel {
		go k.work(ctx, queue, informer.GetStore())
	}
	context.AfterFunc(ctx, queue.ShutDown)
	return nil
}

// slim drops what is not used, since there may be many pods.
func slim(object any) (any, error) {
	if pod, ok := object.(*core.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = core.PodSpec{NodeName: pod.Spec.NodeName, Containers: pod.Spec.Containers}
	}
	return object, nil
}

func (k *kubelets) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], store cache.Store) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		var err error
		if object, exists, _ := store.GetByKey(key); exists {
			err = k.sync(ctx, object.(*core.Pod))
		}
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			queue.Forget(key)
		} else {
			fmt.Fprintln(os.Stderr, "pod", key, err)
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

// sync takes the next step of a pod. The change that it makes comes back as an event and leads to the step after it.
func (k *kubelets) sync(ctx context.Context, pod *core.Pod) error {
	node := k.nodes[pod.Spec.NodeName]
	exit, ends := pod.Annotations[exitAnnotation]
	switch {
	case node == nil:
		return nil
	case pod.DeletionTimestamp != nil && pod.Status.Phase == core.PodRunning:
		return k.report(ctx, pod, ended(pod, 0))
	case pod.DeletionTimestamp != nil:
		return k.remove(ctx, pod)
	case pod.Status.Phase == core.PodPending || pod.Status.Phase == "":
		return k.report(ctx, pod, started(pod, node))
	case pod.Status.Phase == core.PodRunning && ends:
		code, err := strconv.Atoi(exit)
		if err != nil {
			return err
		}
		return k.report(ctx, pod, ended(pod, int32(code)))
	}
	return nil
}

// remove deletes a pod for good; it is gone when its finalizers are.
func (k *kubelets) remove(ctx context.Context, pod *core.Pod) error {
	return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, meta.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: meta.NewUIDPreconditions(string(pod.UID))})
}

func (k *kubelets) report(ctx context.Context, pod *core.Pod, status core.PodStatus) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body,
		meta.PatchOptions{}, "status")
	return err
}

func podConditions(ready core.ConditionStatus, reason string) []core.PodCondition {
	var found []core.PodCondition
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.PodReady, core.ContainersReady} {
		status := ready
		if kind == core.PodInitialized {
			status = core.ConditionTrue
		}
		found = append(found, core.PodCondition{Type: kind, Status: status, LastTransitionTime: now(), Reason: reason})
	}
	return found
}

// started is the status of a pod whose containers run.
func started(pod *core.Pod, node *core.Node) core.PodStatus {
	address, host, begin := nextAddress(), node.Status.Addresses[0].Address, now()
	status := core.PodStatus{
		Phase: core.PodRunning, StartTime: &begin, Conditions: podConditions(core.ConditionTrue, ""),
		HostIP: host, HostIPs: []core.HostIP{{IP: host}}, PodIP: address, PodIPs: []core.PodIP{{IP: address}},
	}
	for _, container := range pod.Spec.Containers {
		yes := true
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: "stub://" + container.Image, Ready: true, Started: &yes,
			ContainerID: "stub://" + string(pod.UID) + "/" + container.Name,
			State:       core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: begin}},
		})
	}
	return status
}

// ended is the status of a pod whose containers have all ended with this code.
func ended(pod *core.Pod, code int32) core.PodStatus {
	phase, reason := core.PodSucceeded, "Completed"
	if code != 0 {
		phase, reason = core.PodFailed, "Error"
	}
	status := core.PodStatus{Phase: phase, Conditions: podConditions(core.ConditionFalse, "PodCompleted")}
	for _, container := range pod.Status.ContainerStatuses {
		container.Ready, container.Started = false, new(bool)
		container.State = core.ContainerState{Terminated: &core.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: now(), ContainerID: container.ContainerID}}
		status.ContainerStatuses = append(status.ContainerStatuses, container)
	}
	return status
}
