// Package result has what benchmarks write that package plot reads.
//
// Read scale.go, then peers.go, with the comparison of migrators.
package result
