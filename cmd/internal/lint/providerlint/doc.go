// Package providerlint checks the CRDs and the Go source of a Crossplane provider for the contract of external
// names: `godwit lint provider`.
//
// In CRDs it finds key fields of an external resource that a user can change or remove. It does not compare the text of
// rules: it evaluates them with the API server's own CEL, on an object before and after the change. A CRD of managed
// resources must declare its key fields (fieldmigration.AnnotationKeyFields), because the schema does not show them.
//
// In source it finds exceptions of the contract without a reason: literals of crossplane.Exception, and kinds that
// need an exception and declare none. It does not type-check.
//
// It changes no file, connects to no cluster, and returns an error if it found nothing to check.
//
// # Reading order
//
// finding.go has the results. key.go checks a field, crd.go a CRD, and source.go a Go file. check.go reads the files of
// patterns. A file uses only files before it.
package providerlint
