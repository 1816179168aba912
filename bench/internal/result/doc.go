// Package result has the results that benchmarks write and package plot reads.
//
// Read scale.go, then peers.go, with the comparison of migrators.
package result
