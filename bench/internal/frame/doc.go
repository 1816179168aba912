// Package frame has what all benchmarks share: the life of the program, a cluster, godwit as a user runs it, rounds, and the numbers
// that stand for many. A benchmark has a story of its own, and nothing else.
//
// It compares nothing with an earlier run: what counts is a ratio within one run.
//
// # Reading order
//
// statistics.go and each.go stand alone. main.go is the life of a benchmark, which ends with its result and one line of summary.
// rounds.go lets contestants take turns. cluster.go starts a control plane and runs godwit, store.go writes objects to etcd,
// and process.go runs a program beside the measurement. A file uses only files before it.
package frame
