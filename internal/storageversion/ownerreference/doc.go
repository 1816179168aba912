// Package ownerreference finds ownerReferences that name a version of a CRD which the API server does not serve, and changes
// them to the storage version. The garbage collector can't look up such an owner: it never deletes the dependent of a deleted
// owner, and a deletion in the foreground waits for ever (docs/adr/0056-owner-references.md).
//
// [Scanner.Each] lists the metadata of all objects that the garbage collector knows, page by page. A [Finder] keeps the
// objects whose references name such a version. [Scanner.ReadOwners] lists the owners, and [Owners.Decide] says, purely, what to do about a
// reference. [Repairer.Run] changes the references that can be repaired, one patch for each dependent. The patch tests the UID
// of the dependent and each reference that it changes, and changes nothing else.
//
// The package refuses to repair a reference whose owner does not exist: the garbage collector would delete the dependent
// right after. It creates no object, and it never changes the UID, the kind or the order of references.
//
// # Reading order
//
// owner.go has the owners, reference.go decides, find.go keeps what a scan shows, scan.go reads, and repair.go writes. A file uses only files before it.
package ownerreference
