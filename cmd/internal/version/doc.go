// Package version has the command that prints versions: `godwit version`.
//
// The result for each program in the cluster is found, not found, or not readable with the cause. permission.go lists
// the permissions, manager.go decides from leases which managers run, read.go reads from the API server, and version.go
// has the command. A file uses only files before it.
package version
