// Package crd has the commands that migrate custom resources to the storage version of
// their CRD: `godwit crd`.
//
// The commands decide nothing about a migration, crdmigrator does: they choose CRDs, carry
// plans out side by side, wait where the library says to wait, and turn what it
// reports into the contract of package report.
//
// Read crd.go, then plan.go, run.go with runner.go and passage.go, verify.go, and check.go with
// input.go.
// consent.go asks; survey.go and lacking.go observe CRDs and say which permissions are
// missing; target.go, policy.go and bytes.go are the flags; progress.go and board.go
// show how a run goes.
package crd
