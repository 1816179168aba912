// Package crdreport is the output of `godwit crd`: its JSON contract, and its tables and sums
// for users. It is pure: its functions turn values into text.
//
// # Reading order
//
// contract.go has the types of the JSON output. plan.go, run.go, verify.go, check.go, advise.go, doctor.go
// and rescue.go print the results of the commands, and pipeline.go prints the results of check for pipelines. A file uses
// only files before it.
package crdreport
