// Package revision has the commands that upgrade objects stored in ControllerRevisions:
// `godwit revision`.
//
// Package revision of the library decides about upgrades. The commands choose the scope, run the
// library, and turn its results into the contract of package report.
//
// Read revision.go, then plan.go, run.go with end.go and steps.go, status.go, rollback.go, fix.go;
// permission.go finds the permissions that are missing.
package revision
