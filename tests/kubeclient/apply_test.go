package kubeclient

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// typed is a client of the built-in kinds, which uses protobuf except for applies.
func (s *server) typed(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://" + s.kube})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func owners(list []metav1.ManagedFieldsEntry) string {
	var names []string
	for _, entry := range list {
		names = append(names, fmt.Sprintf("%s/%s", entry.Manager, entry.Operation))
	}
	return strings.Join(names, " ")
}

func TestTypedConfigurationsAreApplied(t *testing.T) {
	maps := newServer(t).typed(t).CoreV1().ConfigMaps("default")
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return maps.Apply(context.Background(), applycore.ConfigMap("a", "default").WithData(data),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if made, err := apply("one", false, map[string]string{"k": "1", "l": "1"}); err != nil || owners(made.ManagedFields) != "one/Apply" {
		t.Fatal(made, err)
	}
	_, err := apply("two", false, map[string]string{"k": "2"})
	if !apierrors.IsConflict(err) || err.Error() != `Apply failed with 1 conflict: conflict with "one": .data.k` {
		t.Fatal(err)
	}
	status := err.(apierrors.APIStatus).Status()
	if causes := status.Details.Causes; len(causes) != 1 || causes[0].Type != metav1.CauseTypeFieldManagerConflict || causes[0].Field != ".data.k" {
		t.Fatal(status)
	}
	if _, err = apply("two", true, map[string]string{"k": "2"}); err != nil {
		t.Fatal(err)
	}
	// Fields that no manager applies any more are removed, fields of others stay; a typed update is tracked, too.
	got, err := apply("one", false, nil)
	if err != nil || len(got.Data) != 1 || got.Data["k"] != "2" {
		t.Fatal(got, err)
	}
	got.Data["u"] = "1"
	if got, err = maps.Update(context.Background(), got, metav1.UpdateOptions{FieldManager: "three"}); err != nil || owners(got.ManagedFields) != "two/Apply three/Update" {
		t.Fatal(owners(got.ManagedFields), err)
	}
	if _, err = apply("one", false, map[string]string{"u": "2"}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"three" using v1: .data.u`) {
		t.Fatal(err)
	}
}

// The applied configuration can be extracted and applied with a change, as controllers do.
func TestExtractedConfigurationEqualsTheAppliedOne(t *testing.T) {
	deployments := newServer(t).typed(t).AppsV1().Deployments("default")
	options := metav1.ApplyOptions{FieldManager: "controller"}
	wanted := applyapps.Deployment("d", "default").WithSpec(applyapps.DeploymentSpec().WithReplicas(2).
		WithSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{"a": "b"})).
		WithTemplate(applycore.PodTemplateSpec().WithLabels(map[string]string{"a": "b"}).WithSpec(applycore.PodSpec().WithContainers(
			applycore.Container().WithName("c").WithImage("i").WithPorts(applycore.ContainerPort().WithContainerPort(80))))))
	made, err := deployments.Apply(context.Background(), wanted, options)
	if err != nil {
		t.Fatal(err)
	}
	extracted, err := applyapps.ExtractDeployment(made, "controller")
	if err != nil || *extracted.Spec.Replicas != 2 || *extracted.Spec.Template.Spec.Containers[0].Name != "c" {
		t.Fatal(extracted, err)
	}
	extracted.Spec.WithReplicas(3)
	if made, err = deployments.Apply(context.Background(), extracted, options); err != nil || *made.Spec.Replicas != 3 || len(made.Spec.Template.Spec.Containers) != 1 {
		t.Fatal(made, err)
	}
	status := applyapps.Deployment("d", "default").WithStatus(applyapps.DeploymentStatus().WithReplicas(1))
	if made, err = deployments.ApplyStatus(context.Background(), status, options); err != nil || made.Status.Replicas != 1 || *made.Spec.Replicas != 3 {
		t.Fatal(made, err)
	}
	if owners(made.ManagedFields) != "controller/Apply controller/Apply" {
		t.Fatal(owners(made.ManagedFields))
	}
}

// Several managers apply to a missing object at once; each apply is merged into those of the others.
func TestConcurrentAppliesToAMissingObjectAreMerged(t *testing.T) {
	s := newServer(t)
	defineHats(t, s.client())
	resource := s.client().Resource(hats).Namespace("default")
	var group sync.WaitGroup
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			name := fmt.Sprintf("m%d", i)
			config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Hat",
				"metadata": map[string]any{"name": "h", "labels": map[string]any{name: "x"}}}}
			if _, err := resource.Apply(context.Background(), "h", config, metav1.ApplyOptions{FieldManager: name}); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	got, err := resource.Get(context.Background(), "h", metav1.GetOptions{})
	if err != nil || len(got.GetLabels()) != 8 || len(got.GetManagedFields()) != 8 {
		t.Fatal(got, err)
	}
}
