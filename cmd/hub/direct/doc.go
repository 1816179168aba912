// Package direct carries out one migration between two hubs in one process: the manager and the agents of both hubs, with a
// transport in memory. Nothing is installed on a hub, and there is no global hub.
//
// The source hub has the state: a ConfigMap for each migration, which takes the place of a ManagedClusterMigration, and
// beside it what a manager and an agent store. Each hub has a Secret with the command that its agent executes. So a
// killed process is continued by another one, on any machine. A Lease on the source hub keeps two processes apart.
//
// # Reading order
//
// hub.go names hubs, address.go keeps how clusters reach the target, transport.go passes messages, store.go reads and writes migrations as ConfigMaps, lease.go keeps processes apart, and
// run.go puts them together with packages agent and manager. A file uses only files before it.
package direct
