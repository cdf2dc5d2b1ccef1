module vigil/tests/kube/gowebhook

go 1.26.0
