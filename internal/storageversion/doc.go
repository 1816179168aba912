// Package storageversion migrates custom resources to the storage version of their CRD: it rewrites the objects that etcd
// still has at an old version, and then, and only then, trims status.storedVersions, so that the old version can be removed.
//
// A [Migrator] works in three steps. Observe reads the [Facts] about one CRD. [PlanFor] decides on them and is pure: a [Plan]
// is Clean, Ready, Unknown, or Blocked with a fix for each [godwit.Blocker]. Run carries a plan out:
//
//   - It settles. An API server that has not adopted the new storage version writes old versions again, so that a run writes
//     nothing before every known server has ([NotSettledError] names the ones it waits for).
//   - It rewrites: every object gets an empty merge patch at the storage version, which the API server elides when the stored
//     bytes are already right. The resourceVersion of the first page goes into a [Checkpoint] before the first write; objects
//     with a newer one need no write any more.
//   - Where managedFields of an object name a version that is not served any more, it removes these entries, in the same write
//     where one is due anyway. This job has a tally of its own and never delays the trim.
//   - It trims, in one patch that tests the CRD's UID, generation and storedVersions, and only after a complete pass without a
//     failure.
//
// [Next] decides what follows. The reconciler of package crdmigrator, the manager and the commands render its decision.
//
// A plan for users has a preflight ([Options].Preflight): package preflight sends the write as a dry run for one object of
// each namespace, and the plan says which webhook or policy denies it or changes the object.
//
// The package refuses to write through any version but the storage version, to take a 404 for a deletion without a second
// look, to trim after a pass that left an object at an old version, and to rely on a write from before the servers settled.
//
// Package internal/request sends its requests, internal/settle decides when the servers have settled, and recent remembers
// writes.
//
// Read plan.go, settle.go, checkpoint.go, then run.go, which is the table of contents of a run: epoch.go and evidence.go are
// what it knows, pages.go and coverage.go what it lists, rewrite.go, write.go and managedfields.go what its workers do,
// candidates.go what an embedder's cache has, trim.go its end, and next.go what follows it. facts.go, unlisted.go and
// preflight.go have the I/O of a plan.
package storageversion
