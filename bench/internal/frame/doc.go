// Package frame has the parts that all benchmarks share: the main function, a cluster, a run of godwit as a user starts it, rounds,
// and statistics. A benchmark has only what it measures.
//
// Package frame does not compare with an earlier run: only a ratio within one run counts.
//
// # Reading order
//
// statistics.go and each.go stand alone. main.go is the life of a benchmark, which ends with its result and one line of summary.
// rounds.go lets contestants take turns. cluster.go starts a control plane and runs godwit, store.go writes objects to etcd,
// and process.go runs a program beside the measurement. A file uses only files before it.
package frame
