// Command manager measures `godwit manager`: how long it takes for many
// CRDs, how much it slows other clients meanwhile, and what it costs while no CRD needs a migration.
//
// The manager is a process of its own, with the permissions and the priority of a
// ServiceAccount. All measurements take turns against the same control plane,
// since the speed of a shared machine changes: compare only ratios within one run of this command.
//
// # Reading order
//
// bench.go has the settings, and what all measurements use. process.go starts and measures the manager,
// and migrations.go watches its migrations. idle.go, wall.go and neighbour.go are the measurements, and
// main.go runs them. A file uses only files before it.
package main
