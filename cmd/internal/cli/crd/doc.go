// Package crd has the commands that migrate custom resources to the storage version of
// their CRD: `godwit crd`.
//
// The commands decide nothing about a migration, storageversion does: they choose CRDs, carry
// plans out side by side, wait where the library says to wait, and turn what it
// reports into the contract of package report.
//
// Read crd.go, then plan.go, run.go with runner.go and passage.go, verify.go, and check.go with
// input.go. The file consent.go asks. The files observe.go and lacking.go read CRDs and find
// missing permissions. The files target.go, policy.go and bytes.go have flags. The files
// progress.go and board.go show the progress of a run.
package crd
