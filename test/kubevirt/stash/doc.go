// Package stash has instance types and preferences as KubeVirt stashed them in every
// form, and the objects that refer to them: 28 fixtures, of which each is a revision
// and can be given to any virtual machine or snapshot.
//
// What is in them is written down here as KubeVirt wrote it: the order of fields in
// its JSON, the empty apiVersion, names with and without a version, kinds in small
// letters. None of it is made by the code that it tests.
//
// Read fixture.go (what there is), then data.go (the payloads) and referrer.go
// (virtual machines, snapshots and start revisions).
package stash
