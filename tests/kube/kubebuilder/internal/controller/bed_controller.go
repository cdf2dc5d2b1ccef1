// Package controller has the controller of beds.
package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
)

// BedReconciler writes the status of beds.
type BedReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// Reconcile computes the area of a bed.
func (r *BedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bed gardenv1.Bed
	if err := r.Get(ctx, req.NamespacedName, &bed); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	bed.Status.Area = bed.Spec.Width * bed.Spec.Length
	meta.SetStatusCondition(&bed.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Measured", ObservedGeneration: bed.Generation})
	return ctrl.Result{}, r.Status().Update(ctx, &bed)
}

// SetupWithManager registers the controller.
func (r *BedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&gardenv1.Bed{}).Named("bed").Complete(r)
}
