// Package source has the actions of the agent on the source hub, one file for each. An action is a pass that may be
// repeated; see package cluster. It sends no message and keeps no state: after a crash it reads everything from the API
// server of the hub.
//
// # Requirements and their actions
//
//   - resolve the placement once, name every bad cluster: [Hub.ValidateSource]
//   - what the move would destroy is named: ManifestWorks that the work agent evicts, and objects of users in the
//     namespace, which the hub deletes. The user chooses what becomes of it: evict.go
//   - what may keep Cleaning from its end is named, and refuses nothing: warning.go
//   - bootstrap secret, KlusterletConfig migration-<target>, the three annotations, and the
//     wait until the klusterlet has them: [Hub.InstallBootstrap]. The settings of a user's
//     own KlusterletConfig are kept. On a hub without KlusterletConfig, a ManifestWork of the
//     migration does it: plain.go, and package klusterlet
//   - the bootstrap kubeconfig of this hub travels with the objects, so that a cluster can
//     return from the target hub: [Hub.SendResources]
//   - pause before collecting, every host of a cluster; collect, clean, batch, send, and send
//     again what is missing: [Hub.SendResources]
//   - hubAcceptsClient=false switches the agent, the original is saved by the same update:
//     [Hub.ReleaseClusters]
//   - the original is restored, first of all: [Hub.RestoreAcceptance]
//   - pauses of the migration are removed, those of users stay: [Hub.RemovePauses]
//   - annotations are restored; secret and KlusterletConfig are deleted with the last cluster
//     of the last migration that needs them: [Hub.RevertBootstrap]
//   - two renewals of the lease, and no condition, prove that a cluster is back:
//     [Hub.AwaitReturn]
//   - deprovision finalizers, what was collected, ObservabilityAddon,
//     CertificateSigningRequests and ManagedCluster are deleted, and what hangs is named:
//     [Hub.DeleteMoved]
//
// # Reading order
//
// hub.go, evict.go, plain.go, warning.go, validate.go, imported.go, way.go, install.go, send.go, release.go, restore.go, pauses.go, revert.go,
// return.go, delete.go. A file uses only files before it.
package source
