// Package cluster has what the agents of both hubs share: passes over managed clusters, original values that are saved
// and restored, ownership of objects, and lease checks. It does not decide the order of actions, and knows no messages.
//
// An action is a pass. A pass does what is possible now. For each cluster it returns that the action is done, what it
// waits for, or why it failed. The caller repeats the pass for the clusters that wait. So every action may be repeated,
// and an agent that was killed continues with the next pass. Reads may come from a cache: every write has the
// resourceVersion or the UID that was read.
//
// # Reading order
//
// reason.go, names.go, batch.go, confirm.go, hub.go, result.go, read.go, user.go, patch.go, original.go,
// object.go, owned.go, owner.go, delete.go, lease.go, kubeconfig.go, evict.go, klusterlet.go, klusterletconfig.go, token.go.
// A file uses only files before it.
package cluster
