// Package externalname tests the contract of external names on crossplane-runtime's managed
// reconciler, with a real API server and an external system whose answers get lost.
//
// It is a module of its own: the adapter must not require the control plane of the tests, which
// is never released, and the other tests need no module of Crossplane.
//
// Numbers in comments, such as "// 22", count the situations that every provider has to
// survive. The external system is the interface directory: one in memory, and in TestSlapd a
// directory server. Tests whose names begin with Provider run examples/provider-ldap on that
// server. Without slapd they are skipped, except in CI.
package externalname

//go:generate go run ./internal/reference ../../docs/reference/external-name-kinds.md
