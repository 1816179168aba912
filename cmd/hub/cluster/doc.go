// Package cluster is what the agents of both hubs do in the same way: passes over managed
// clusters, original values that are saved and restored, ownership of objects, and fresh
// leases. It decides nothing about the order of actions, and knows no message.
//
// An action is a pass. A pass does what can be done now, and says for each cluster that it
// is done, what it waits for, or why it failed. The caller repeats the pass for the
// clusters that wait. So every action may be repeated, and an agent that was killed
// continues with the next pass. Reads may come from a cache: every write has the
// resourceVersion or the UID that was read.
//
// # Reading order
//
// reason.go, names.go, together.go, confirm.go, hub.go, result.go, read.go, patch.go, original.go,
// object.go, owner.go, delete.go, lease.go, kubeconfig.go, klusterlet.go, klusterletconfig.go.
// A file uses only files before it.
package cluster
