// Package crdmigrator carries custom resources across API versions: objects
// that etcd still holds at an old version are written again at the current
// storage version, and then, and only then, status.storedVersions of their
// CustomResourceDefinition is trimmed, so that the old version can be dropped.
//
// A [Migrator] works in three steps. Observe reads the [Facts] about one
// CRD. [PlanFor] decides on them, purely: a [Plan] is Clean, Ready, or
// Blocked with a remedy for each [godwit.Blocker]. Run carries a plan out:
//
//   - It settles. An API server that has not yet adopted the new storage
//     version puts migrated objects back, so nothing is written before every
//     known server has ([NotSettledError] names the ones it waits for).
//   - It rewrites: every object gets an empty merge patch at the storage
//     version, which the server elides when the stored bytes are already right.
//     The resourceVersion C of the first page goes into a [Checkpoint] before
//     the first write; whatever carries a newer one needs no write any more.
//   - Where managedFields of an object name a version that is not served any
//     more, it removes these entries, in the same write where one is due anyway.
//     This job is tallied apart and never stands in the way of the trim.
//   - It trims, in one patch that tests the CRD's UID, generation and
//     storedVersions, and only after a complete pass without a failure.
//
// A plan for users has a preflight ([Options].Preflight): package preflight sends the
// write as a dry run for one object of each namespace, and the plan says which webhook or
// policy denies it or changes the object, and how to get past it.
//
// What it refuses to do: to write through any version but the storage version,
// to take a 404 for a deletion without looking, to trim after a pass that left
// anything behind, and to trust a write sent before the servers settled.
//
// [CRDMigrator] is the same to be embedded in an operator, as a reconciler of the
// CRDs that its Config or its Selector names.
//
// Package releasecheck looks at the next release of a CRD, and package etcdverify proves the
// result from etcd's side.
//
// Package internal/settle decides when the servers have settled.
// Read plan.go, settle.go, checkpoint.go, then run.go, which is the table of contents of
// a run: epoch.go and evidence.go are what it knows, pages.go and coverage.go what it
// lists, rewrite.go, write.go and managedfields.go what its workers do, trim.go its end,
// and next.go what follows it. facts.go, unlisted.go, preflight.go and client.go hold the
// I/O. scope.go, setup.go, reconciler.go, and candidates.go embed them; package
// internal/recent is what they remember.
package crdmigrator
