// Package releasecheck finds out before a release whether the API server would refuse the next
// version of a CustomResourceDefinition, or accept it and leave objects that can no longer be
// read or applied.
//
// [Checker.Observe] reads the [Facts] from a cluster, [Compared] has those that two files show, and [For] decides on them, purely.
// The package changes nothing: it sends the CRD as a dry run.
//
// # Reading order
//
// fix.go has what a user can do, and finding.go the reasons, the facts and the results. values.go, spec.go, files.go, apply.go and check.go
// decide, and facts.go reads a cluster. A file uses only files before it.
package releasecheck
