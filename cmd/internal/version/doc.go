// Package version has the command that prints versions: `godwit version`.
//
// What is known of the cluster is a value for each program: found, not found, or not readable with the cause.
// permission.go lists the permissions, manager.go decides from leases which managers run, read.go asks the API server, and version.go has the command. A file
// uses only files before it.
package version
