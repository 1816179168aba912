// Package releasecheck finds out before a release whether the API server would refuse the next
// version of a CustomResourceDefinition, or accept it and leave objects that can no longer be
// read or applied.
//
// [Checker.Observe] reads the [Facts], and [For] decides on them, purely. The package changes
// nothing: it sends the CRD as a dry run.
//
// Read fix.go, which has what a user can do, values.go, spec.go and check.go, which decide, then facts.go, which reads.
package releasecheck
