// Package markers checks that each Go type of an operator's API says whether its
// objects are migrated. An author who adds a type easily forgets that decision.
// Each root type carries one of two comments:
//
//	// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
//	// +godwit:storage-version-migrator:exclude=<reason>
//
// controller-gen turns the first into the label by which a migrator finds the
// CRD; the second says why there is no label. [Require] is the check as a
// test, [Check] the same as a function; `godwit lint markers` is the command.
//
// It reads comments as controller-gen does, whose rules are not obvious. A
// comment belongs to a type if it is the documentation of the type, or the next
// comment above that, at any distance. controller-gen does not read a marker in a
// comment further up, nor a marker outside the parentheses of a group of types.
//
// The label belongs to the CRD, and a CRD has one storage version. If the
// packages have several versions of a kind in one API group, the type with
// +kubebuilder:storageversion must carry the marker; the others may.
//
// It reads all files except tests and files with //go:build ignore. It reads
// generated files, since CRDs are made from them as well, and files with any
// other build tag. It refuses to type-check, to change a file, and to pass if it
// found no root type.
//
// # Reading order
//
// marker.go reads a marker, and source.go a file. finding.go has the options and the findings. rules.go
// decides, check.go does the whole check, and require.go makes a test of it. A file uses only files before it.
package markers
