// Package revision has the commands that upgrade objects stored in ControllerRevisions:
// `godwit revision`.
//
// Package revision of the library decides on upgrades. The commands select the scope, run the library, and convert its
// results to the contract of package render.
//
// # Reading order
//
// selection.go and retention.go have flags. session.go is the connection of a command, and scan.go
// opens it and scans. steps.go shows progress, and pass.go is one run over the selected revisions. The
// commands are in plan.go, end.go and run.go, status.go, rollback.go and fix.go, and
// revision.go is their parent. A file uses only files before it.
package revision
