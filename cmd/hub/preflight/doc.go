// Package preflight reports before a migration which clusters would move, which are at risk and why, and what blocks
// the migration. It writes nothing.
//
// It runs the checks of the migration itself: those of the manager for the hubs and other migrations, and those of
// packages source and target for the clusters. It also looks for what a migration leaves behind (ManifestWorks,
// add-ons, cluster sets), and for clocks that differ. A user may have access to the global hub only: the preflight
// reports what it can't read as NotChecked, never as Ready.
//
// # Reading order
//
// reason.go and report.go have the result. risk.go decides on the facts of one cluster, and request.go is the input.
// renewal.go decides whether a process runs, lease.go whether an agent runs, and heartbeat.go reads what the manager
// receives from it. global.go, source.go and target.go read the three API servers, preflight.go runs all checks, and
// permission.go has the permissions. A file uses only files before it.
package preflight
