// A current kubectl for tests (tools/build-clients), with all commands of k8s.io/kubectl. The program in
// k8s.io/kubernetes does the same, but cannot be built without all of Kubernetes' modules.
package main

import (
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	command := cmd.NewDefaultKubectlCommand()
	command.SilenceErrors = true // CheckErr prints the error
	util.CheckErr(command.Execute())
}
