// Package e2e tests on a real node what a release ships: the image, the chart, and the pieces of examples/upgrade. Pods of the image run
// as they do for users, in a namespace that enforces restricted Pods. `make e2e-node` runs it, and `make e2e-node-short` one of its
// tests: TestInstall.
//
// Read release_test.go for the installation, object_test.go for what is migrated, and then any test. values_test.go installs the sets of
// valuesets_test.go, which together have every value of the chart: schema_test.go finds one that is missing.
package e2e
