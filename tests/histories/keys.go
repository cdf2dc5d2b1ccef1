package main

import "fmt"

// The keys of a round. Clients move together from one cell of keys to the next, so that no partition becomes large. In
// every second cell operations join keys. histories/client/client.c and kubeclient/recorder do the same.
const (
	cellNanos   = int64(500e6)
	keysPerCell = 6
)

func cellKey(cell int64, key int) string { return fmt.Sprintf("h/%d/%d", cell, key) }

func cellPrefix(cell int64) string { return fmt.Sprintf("h/%d/", cell) }

func joined(cell int64) bool { return cell%2 == 1 }

func leasePrefix(id int64) string { return fmt.Sprintf("l/%x/", id) }

const lockPrefix = "k/"

func lockName(cell int64) string { return fmt.Sprint(lockPrefix, cell/4) }
