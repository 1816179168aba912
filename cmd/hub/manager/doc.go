// Package manager is the manager's side of migrations, on the global hub: thin I/O around hub.Step and hub.Due. All
// decisions about a migration are in package hub.
//
// Two things change a migration: a message of a hub ([Reconciler.Receive]), and the controller, after a change by a
// user or by a message, or after time has passed ([Reconciler.Reconcile]). Both read the state from the API server,
// compute the next one and write it, ConfigMaps first and the status as the commit. Only the controller executes
// effects: it sends commands, and runs the actions of the manager. The manager can be restarted at any time: everything
// in its memory follows from the API server, the brokers and the next heartbeat.
//
// # Requirements and their files
//
//   - an agent is known by a key that a user has enrolled: enrolled.go
//   - the state is written before its effects, and the offset of a message is committed after
//     that: store.go, receive.go
//   - public keys and the sealed kubeconfig are passed on, and deleted at the end: exchange.go
//   - hubs are Available and their agents alive before anything is sent: hubs.go
//   - migrations of the same cluster follow one another: claim.go
//   - a ManagedServiceAccount for a pair of hubs, or a token of the target: hubs.go, bootstrap.go
//   - the manager shows when it has received the last heartbeat of each hub: receipt.go, publish.go
//   - commands are sent again after each third of the timeout, and by no clock but the
//     manager's: reconcile.go
//   - forged, replayed and late messages are refused, with a metric: receive.go
//   - a CRD of another project is refused: setup.go
//   - a process carries one migration out by itself, without a global hub and brokers: direct.go
//
// # Reading order
//
// problem.go, receipt.go and metrics.go have small types, which reconciler.go uses. Then status.go, which
// writes what users see, enrolled.go, store.go, exchange.go, hubs.go, claim.go, bootstrap.go, command.go, act.go,
// reconcile.go, receive.go, publish.go, receiver.go, direct.go and setup.go. A file uses only files before it.
package manager
