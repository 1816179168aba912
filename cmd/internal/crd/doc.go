// Package crd has the commands that migrate custom resources to the storage version of
// their CRD: `godwit crd`.
//
// Package storageversion decides about a migration. The commands choose CRDs, carry out the plans
// concurrently, wait where the library says to wait, and print its reports with package crdreport.
//
// # Reading order
//
// Package manifest has the flags for files with CRDs. session.go is the connection of a command, observe.go reads CRDs,
// and target.go chooses them. progress.go and board.go show the progress of a run, and of a scan of the cluster. crdrun.go is the
// run of one CRD, lacking.go finds missing permissions, and runner.go runs several CRDs. consent.go asks the
// user. references.go repairs ownerReferences. save.go writes the file of --save-values. The commands are in plan.go, run.go and
// verify.go, and crd.go is their parent. Packages check, doctor and rescue have the others. A file uses only files before it.
package crd
