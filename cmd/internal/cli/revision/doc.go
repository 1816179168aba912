// Package revision has the commands that upgrade objects stored in ControllerRevisions:
// `godwit revision`.
//
// The commands decide nothing about an upgrade, package revision of the library does: they
// choose the scope, run it, and turn what it reports into the contract of package report.
//
// Read revision.go, then plan.go, run.go with end.go and steps.go, status.go, rollback.go, fix.go;
// permission.go finds the permissions that are missing.
package revision
