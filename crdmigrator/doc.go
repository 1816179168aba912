// Package crdmigrator migrates the custom resources of an operator to the storage version of their CRDs, so that a later
// release of the operator can remove the old version.
//
// [CRDMigrator] is a reconciler of CustomResourceDefinitions. It migrates those whose kinds Config names and those that
// Selector selects. For each CRD it waits until every API server uses the storage version, rewrites every object, removes
// entries of managedFields that name a version which is not served, and trims status.storedVersions.
//
// It refuses to write through any version but the storage version, to take a 404 for a deletion without a list that confirms it,
// and to trim after a pass that left an object at an old version.
//
// Package internal/storageversion decides and does the work, for this reconciler as for the godwit command and the manager.
// Package releasecheck checks the next release of a CRD, package markers the Go types of an operator's API, and package
// etcdverify proves the result in etcd.
//
// # Reading order
//
// scope.go finds the CRDs, and reader.go lists their objects. migrator.go is what the operator sets and what the reconciler
// remembers. setup.go registers the reconciler, report.go writes its log and its events, and reconciler.go is its table of
// contents. A file uses only files before it.
package crdmigrator
