// Package providerlint checks the CRDs and the Go source of a Crossplane provider for the contract of external
// names: `godwit lint provider`.
//
// In CRDs it finds fields that make the key of an external resource and that a user can change or remove. It does
// not compare the text of rules: it has the API server's own CEL decide on an object, before and after the change. A CRD of
// managed resources must say which fields make its key, since no schema shows it (fieldmigration.AnnotationKeyFields).
//
// In source it finds exceptions of the contract without a reason: literals of crossplane.Exception, and kinds that
// need an exception and declare none. It does not type-check.
//
// What it refuses to do: to change a file, to connect to a cluster, and to pass where it found nothing to check.
//
// # Reading order
//
// finding.go is what a caller gets. key.go decides about a field, crd.go about a CRD, and source.go about a file of
// Go. check.go reads what patterns name. A file uses only files before it.
package providerlint
