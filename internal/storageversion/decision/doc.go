// Package decision decides about the storage versions of CRDs, and does no I/O. [PlanFor] makes a [Plan] of [Facts] and a
// [Policy]: what is to be done, what blocks it, and how to fix that. [Next] decides what follows a pass.
//
// # Reading order
//
// policy.go has what a user decides. fix.go and converter.go have what a user can do, reason.go has the reasons, and blocker.go
// the findings that several files need. scope.go is about objects of another scope than their CRD. unlisted.go classifies a list that failed, roundtrip.go has what dry runs through old
// versions have shown, and answering.go which server answers. facts.go is what a plan decides on: values.go decides about values, servers.go
// about API servers, and plan.go about the rest. error.go has the errors that end a run, report.go is what a run has done, and next.go decides what follows.
// A file uses only files before it.
package decision
