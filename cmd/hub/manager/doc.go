// Package manager is the manager's side of migrations, on the global hub: thin I/O around
// hub.Step and hub.Due. It decides nothing about a migration that package hub does not say.
//
// Two things happen to a migration, and both read its state from the API server, make the
// next one and write it, ConfigMaps first and the status as the commit: a message of a hub
// arrives ([Reconciler.Receive]), or the controller reconciles it, since a user has changed
// it, a message has, or time has passed ([Reconciler.Reconcile]). Only the controller
// executes effects: it sends commands, and carries out the actions of the manager. Nothing
// is kept in memory that a manager which starts anew does not learn from the API server, the
// brokers and the next heartbeat.
//
// # What holds which requirement
//
//   - an agent is known by a key that a user has enrolled: enrolled.go
//   - the state is written before its effects, and the offset of a message is committed after
//     that: store.go, receive.go
//   - public keys and the sealed kubeconfig are passed on, and deleted at the end: exchange.go
//   - hubs are Available and their agents alive before anything is sent: hubs.go
//   - migrations of the same cluster follow one another: claim.go
//   - a ManagedServiceAccount for a pair of hubs, or a token of the target: bootstrap.go
//   - the manager shows when it has received the last heartbeat of each hub: receipt.go, publish.go
//   - commands are sent again after each third of the timeout, and by no clock but the
//     manager's: reconcile.go
//   - forged, replayed and late messages are refused, with a metric: receive.go
//   - a CRD of another project is refused: setup.go
//
// # Reading order
//
// problem.go, lock.go, receipt.go and metrics.go are small nouns, which reconciler.go has. Then
// status.go, which writes what users see, enrolled.go, store.go, exchange.go, hubs.go, claim.go, bootstrap.go,
// command.go, act.go, reconcile.go, receive.go, publish.go, receiver.go and setup.go. A file uses only
// files before it.
package manager
