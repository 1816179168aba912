// Package preflight says before a migration which clusters would move, which would be at risk and
// why, and what blocks. It writes nothing.
//
// Its checks are those of the migration: the manager's of the hubs and of other migrations, and
// those of packages source and target of the clusters. Beside them it looks for what a migration
// leaves behind: ManifestWorks, add-ons, cluster sets, and clocks that differ. What it can't read
// is NotChecked and never Ready, because a user may have access to the global hub alone.
//
// # Reading order
//
// reason.go and report.go are the result. risk.go decides on what was read of one cluster, and
// request.go says what is asked. renewal.go tells whether a process runs, lease.go whether an agent does,
// and heartbeat.go what the manager hears of it. global.go, source.go and
// target.go read the three API servers, preflight.go does all, and permission.go is what RBAC has to
// allow. A file uses only files before it.
package preflight
