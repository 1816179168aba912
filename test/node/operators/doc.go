// Package operators upgrades operators of other projects on a real node: an old release runs in pods with its webhooks, its CRDs are full of
// objects, Godwit migrates them, and the next release removes the old version and continues. The programs of all releases are compiled by
// tools/operators. `make e2e-operators` runs it, and writes what it has measured into docs/reference/operators.md.
//
// Read stage_test.go for the cluster, chart_test.go for how a release is installed, snapshot_test.go for what must not change, and then
// certmanager_test.go, migrator_test.go, meeting_test.go, fleet_test.go and clusterapi_test.go. page_test.go writes the page. Package content compares objects,
// and package writes reads the audit log.
package operators
