module vigil/tests/kube/operators/cluster-api

go 1.26.0

require sigs.k8s.io/cluster-api v1.13.6 // indirect
