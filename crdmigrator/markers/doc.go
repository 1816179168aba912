// Package markers checks the Go types of an operator's API for the decision
// whether their objects are migrated, which a new type is so easily added
// without. Each root type carries one of two comments:
//
//	// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
//	// +godwit:storage-version-migrator:exclude=<reason>
//
// controller-gen turns the first into the label by which a migrator finds the
// CRD; the second says why there is none. [Require] is the check as a
// test, [Check] the same as a function; `godwit lint markers` is the command.
//
// It reads comments as controller-gen does, of which the rules are not obvious:
// they belong to a type when they stand in its documentation, or in the next
// comment above that, however far. A marker one comment further up is lost, and
// so is one outside a type's parentheses.
//
// A label is the CRD's, and a CRD has one storage version: where
// the packages given hold several versions of a kind in one API group, the type
// with +kubebuilder:storageversion has to carry the marker, the others may.
//
// All files count but those of tests and those that say //go:build ignore:
// generated ones, since CRDs are made from them as well, and those of any
// other build tag. What it refuses to do: to type-check, to change a file, and
// to pass where it found no root type.
//
// # Reading order
//
// marker.go reads a marker, and source.go a file. finding.go is what a caller gives and gets. rules.go
// decides, check.go is the whole, and require.go makes a test of it. A file uses only files before it.
package markers
