// Package database has a kind of managed resources, Database, on the job service of package jobservice. It has the controller
// twice: [Resource] on package crossplane, and [SetupByHand] on crossplane-runtime alone, as authors write it. Tests, the demo and
// the benchmarks use the same kind.
//
// # Reading order
//
// types.go has the kind. resource.go has the controller on package crossplane, and what it exports. byhand.go has the other
// controller. A file uses only files before it.
package database
