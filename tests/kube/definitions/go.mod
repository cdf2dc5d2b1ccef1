// The modules whose CustomResourceDefinitions and examples tests/kube/same_definitions_test.py creates. None is imported.
module vigil/tests/kube/definitions

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.5.7
	github.com/cert-manager/cert-manager v1.21.2
	github.com/cilium/cilium v1.20.2
	github.com/fluxcd/source-controller v1.9.6
	github.com/kedacore/keda/v2 v2.21.0
	github.com/kyverno/kyverno v1.19.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
	knative.dev/eventing v0.50.0
	knative.dev/serving v0.51.0
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/gateway-api v1.6.3
	sigs.k8s.io/karpenter v1.14.0
)
