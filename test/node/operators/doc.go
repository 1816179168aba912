// Package operators runs what migrates by itself on a real node, at the same time as Godwit: the migrator of kube-controller-manager.
// `make e2e-operators` runs it, and writes what it has measured into docs/reference/operators.md.
//
// Read stage_test.go for the cluster, and then migrator_test.go. page_test.go writes the page.
package operators
