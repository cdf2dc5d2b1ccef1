package main

import (
	"context"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	leaseSeconds   = 40
	leaseRenewal   = 10 * time.Second
	podsPerNode    = "110"
	addressesOfOne = 250 // of the last byte of an address
)

func newNode(i int) *core.Node {
	name := fmt.Sprintf("node-%04d", i)
	capacity := core.ResourceList{
		core.ResourceCPU:              resource.MustParse("32"),
		core.ResourceMemory:           resource.MustParse("128Gi"),
		core.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		core.ResourcePods:             resource.MustParse(podsPerNode),
	}
	return &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3),
		}},
		Status: core.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Conditions:  conditions(),
			Addresses: []core.NodeAddress{
				{Type: core.NodeInternalIP, Address: fmt.Sprintf("10.240.%d.%d", i/addressesOfOne, i%addressesOfOne+1)},
				{Type: core.NodeHostName, Address: name},
			},
			NodeInfo: core.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

func conditions() []core.NodeCondition {
	var found []core.NodeCondition
	for _, one := range []struct {
		kind   core.NodeConditionType
		status core.ConditionStatus
		reason string
	}{
		{core.NodeMemoryPressure, core.ConditionFalse, "KubeletHasSufficientMemory"},
		{core.NodeDiskPressure, core.ConditionFalse, "KubeletHasNoDiskPressure"},
		{core.NodePIDPressure, core.ConditionFalse, "KubeletHasSufficientPID"},
		{core.NodeReady, core.ConditionTrue, "KubeletReady"},
	} {
		found = append(found, core.NodeCondition{Type: one.kind, Status: one.status, Reason: one.reason,
			LastHeartbeatTime: now(), LastTransitionTime: now()})
	}
	return found
}

// register creates the node and its lease, unless they exist.
func (k *kubelets) register(ctx context.Context, node *core.Node) error {
	made, err := k.client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		made, err = k.client.CoreV1().Nodes().Get(ctx, node.Name, meta.GetOptions{})
	}
	if err != nil {
		return err
	}
	seconds, renewed := int32(leaseSeconds), meta.NewMicroTime(time.Now())
	lease := &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: node.Name, OwnerReferences: []meta.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: made.Name, UID: made.UID},
		}},
		Spec: coordination.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	_, err = k.client.CoordinationV1().Leases(core.NamespaceNodeLease).Create(ctx, lease, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (k *kubelets) renewLease(ctx context.Context, name string) error {
	body := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(meta.RFC3339Micro))
	_, err := k.client.CoordinationV1().Leases(core.NamespaceNodeLease).Patch(ctx, name, types.MergePatchType,
		[]byte(body), meta.PatchOptions{})
	return err
}
