// Command manager measures `godwit manager`: how long it takes for many CRDs, how much it slows other clients meanwhile, and its
// cost while no CRD needs a migration.
//
// The manager is a separate process, with the permissions and the priority of a ServiceAccount. All measurements take turns
// against the same control plane, since the speed of a shared machine changes: compare only ratios within one run of this command.
//
// # Reading order
//
// migrations.go watches the migrations of the manager, and client.go is a second client. bench.go has what all measurements use, and
// process.go runs the manager. wall.go, neighbour.go and idle.go are the measurements, and main.go has the result. A file uses
// only files before it.
package main
