// Package target has the actions of the agent on the target hub, one file for each. An action is a pass that may be
// repeated; see package cluster. It sends no message and keeps no state: after a crash it reads everything from the API
// server of the hub.
//
// # Requirements and their actions
//
//   - none of the clusters is on the hub, its namespace is not being deleted and has nothing that
//     would stand in the way, and it has fewer than ten CertificateSigningRequests: [Hub.ValidateTarget]
//   - permissions of the bootstrap account: [Hub.GrantRegistration]; without
//     ManagedServiceAccounts, a token: [Hub.IssueToken]
//   - rules are the allow-list; objects are labelled, paused, and get their status before
//     anything unpauses them; the ManagedCluster is not accepted, and stays so; its klusterlet
//     is configured with the kubeconfig of the source hub as well: [Hub.ReceiveResources]
//   - the target accepts before the source releases: [Hub.AcceptClusters]
//   - the requests of the bootstrap account are approved for clusters that move, until they
//     are Joined, and denied for every other identity; Joined, Available, and two renewals
//     of the lease; what hinders is named: [Hub.AwaitRegistration]
//   - hubAcceptsClient=false, which automatic approval does not undo: [Hub.StopAccepting]
//   - only objects with the label of the migration are deleted, and a ManagedCluster only if its
//     namespace proves that the migration has created it: [Hub.DeleteCreated]
//   - the klusterlet has the hub's own bootstrap kubeconfig and no longer the source's, then
//     annotations and pauses of the migration go, and those of users stay: [Hub.FinishMoved]
//   - exactly what was added goes: [Hub.RevokeRegistration]
//
// # Reading order
//
// hub.go, created.go, validate.go, plain.go, approval.go, grant.go, issue.go, write.go, return.go, receive.go,
// accept.go, request.go, register.go, stop.go, delete.go, finish.go, revoke.go. A file uses only files
// before it.
package target
