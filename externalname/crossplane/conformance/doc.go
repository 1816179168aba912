// Package conformance proves that a provider follows the contract of external names, on a real
// API server and with the provider's own external system or a stand-in for it. It takes any
// provider that reconciles managed resources: a setup of package crossplane, a reconciler that
// was written by hand, a bare managed.ExternalClient, or a program that runs as a process.
//
//	func TestContract(t *testing.T) {
//		conformance.Run(t, kind, harness)
//	}
//
// A [Kind] says what the objects of one kind look like. A [Harness] opens an external system
// ([System]) and says how the provider starts ([Provider]). Every check has a namespace, an external
// system and a provider of its own, and leaves nothing behind.
//
// The result of a check is Passed, Failed with the evidence, DoesNotApply with the cause, or
// NotChecked with what is missing. A check is never Passed because it was not checked. [Run]
// prints each check when it ends, and the table of all checks. docs/reference/external-names.md describes them.
//
// Package exporttest proves the same of a tool that writes manifests for external resources that exist.
//
// # Reading order
//
// report.go is what a run returns, and kind.go and harness.go are what an author writes. calls.go and
// environment.go are what a check works with. manager.go and process.go start providers, and await.go
// waits for them. check.go says when a check applies, and runs one. The checks are in
// names.go, create.go, observe.go, fault.go, update.go, delete.go and crash.go. catalog.go lists them, and run.go
// runs the list. proxy.go is a proxy between a provider and an external system with an HTTP API. A file uses only files before it.
package conformance

//go:generate go run ../internal/reference ../../../docs/reference/external-names.md
