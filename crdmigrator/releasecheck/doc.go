// Package releasecheck tells before a release whether the API server would refuse the next
// version of a CustomResourceDefinition, or take it and leave objects that can no longer be
// read or applied.
//
// [Checker.Observe] reads the [Facts], and [For] decides on them, purely. It changes nothing:
// the API server is asked by a dry run.
//
// Read fix.go, which has what a user can do, check.go and spec.go, which decide, then facts.go, which reads.
package releasecheck
