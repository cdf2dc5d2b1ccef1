// A current kubectl, for tests (tools/build-clients): all of its commands as k8s.io/kubectl has them. The program of
// k8s.io/kubernetes does no more than this, but cannot be built without all of Kubernetes' modules.
package main

import (
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	command := cmd.NewDefaultKubectlCommand()
	command.SilenceErrors = true // told once, by what chooses the exit code
	util.CheckErr(command.Execute())
}
