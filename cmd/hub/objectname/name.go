// Package objectname makes the names of the objects that a migration creates for a hub, for a KlusterletConfig of a user, or for a cluster.
// Objects for different ones have different names: a hub and a cluster have no dot in their names, so a dot ends them. The package does
// no I/O.
package objectname

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// maxName is the longest name of an object.
const maxName = 253

// Prefixes of names. The form with a dot is for what does not fit into the one with a hyphen: no name has both.
const (
	migration      = "migration-"
	longMigration  = "migration."
	bootstrap      = "bootstrap-"
	otherBootstrap = "bootstrap."
	returns        = "godwit-return-"
)

// KlusterletConfig returns the name of the KlusterletConfig of the source hub for clusters that move to a hub, and that have a KlusterletConfig
// of a user, or none.
func KlusterletConfig(to, user string) string {
	if user == "" {
		return migration + to
	}
	if name := migration + to + "." + user; len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(user))
	return longMigration + to + "." + hex.EncodeToString(sum[:16])
}

// importController are names that the import controller gives to bootstrap secrets of its own hub, in the klusterlet of a cluster.
var importController = []string{"bootstrap-hub-kubeconfig", "bootstrap-hub-kubeconfig-current-hub"}

// BootstrapSecret returns the name of the Secret of the source hub with the bootstrap kubeconfig of a hub.
func BootstrapSecret(to string) string {
	if name := bootstrap + to; !slices.Contains(importController, name) {
		return name
	}
	return otherBootstrap + to
}

// Return returns the name of the KlusterletConfig and of the Secret of the target hub that keep the kubeconfig of the source hub in the klusterlet of
// a cluster.
func Return(cluster string) string { return returns + cluster }
