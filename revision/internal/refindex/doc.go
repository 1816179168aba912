// Package refindex finds out which objects refer to which revision: it scans the referrers of a
// namespace, or of all, and makes an index of their references.
//
// Read index.go, what a scan found, then scan.go.
package refindex
