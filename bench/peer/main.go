// The peer we measure and compare with: a real etcd, built from its own module at the version
// that go.mod pins.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
