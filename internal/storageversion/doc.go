// Package storageversion migrates custom resources to the storage version of their CRD: it rewrites the objects that etcd
// still has at an old version, and then, and only then, trims status.storedVersions, so that the old version can be removed.
//
// A [Migrator] works in three steps. [Migrator.Observe] reads the [decision.Facts] about one CRD. [decision.PlanFor] decides on
// them: a [decision.Plan] is Clean, Ready, Unknown, or Blocked with a fix for each [godwit.Finding]. [Migrator.Run] carries a plan out:
//
//   - It settles. An API server that has not adopted the new storage version still writes the old one. A run therefore writes
//     nothing until every known server has adopted it ([decision.NotSettledError] names the servers that the run waits for).
//   - It rewrites: every object gets an empty merge patch at the storage version. The API server elides the write if the stored
//     bytes are already right. Before the first write, the run saves the resourceVersion of the first page in a
//     [evidence.Checkpoint]; objects with a newer resourceVersion need no write.
//   - It cleans managedFields: it removes the entries that name a version which is no longer served. If the object needs a write
//     as well, one request does both. The cleanup has a tally of its own and never delays the trim.
//   - It trims, in one patch that tests the CRD's UID, generation and storedVersions, and only after a complete pass without a
//     failure.
//
// [decision.Next] decides what follows. The reconciler of package crdmigrator, the manager and the commands render its decision.
//
// A plan has a preflight ([Options].Preflight): package preflight sends the write as a dry run for one object of each
// namespace, and the plan says which webhook or policy changes the object and, to a user, which one denies the write.
//
// The package refuses to write through any version but the storage version, to take a 404 for a deletion without a list that
// confirms it, to trim after a pass that left an object at an old version, and to rely on a write from before the servers settled.
//
// Package resource rewrites resources of the API server itself with the same actions ([Objects]).
//
// Package decision is pure, and all else here does I/O. Package internal/request sends the requests, internal/settle decides when
// the servers have settled, listing proves that a list showed every object, managedfields finds the entries to remove, evidence
// keeps what an interrupted run has proven, and recent remembers writes.
//
// # Reading order
//
// Read package decision first. patch.go has what each write sends, and failure.go classifies the answers. migrator.go is what
// a caller configures; target.go sends dry runs, and roundtrip.go those through old versions. answering.go asks which server
// answers. permissions.go and observe.go are the I/O of a plan, and surroundings.go is that of a plan of all CRDs. epoch.go is
// what a run knows of its CRD, tally.go and progress.go count, rewrite.go and visit.go are what its workers do, pass.go is one
// pass over all objects or over those that a cache has, objects.go one over a resource without a CRD, and trim.go the end.
// run.go is the table of contents of a run. A file uses only files before it.
package storageversion
