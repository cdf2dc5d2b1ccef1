// The operator of gardens.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
	"vigil/tests/kube/kubebuilder/api/v1alpha1"
	"vigil/tests/kube/kubebuilder/internal/controller"
	webhookv1 "vigil/tests/kube/kubebuilder/internal/webhook/v1"
)

func main() {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(gardenv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err == nil {
		err = (&controller.BedReconciler{Client: mgr.GetClient(), Scheme: scheme}).SetupWithManager(mgr)
	}
	if err == nil {
		err = webhookv1.SetupBedWebhookWithManager(mgr)
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		ctrl.Log.Error(err, "the manager has ended")
		os.Exit(1)
	}
}
