// Package crdmigration reconciles CRDMigrations: it plans and runs the migration of the CRD that each is named after,
// and writes the results to the status.
//
// It never writes an object of a migrated kind itself: package storageversion does, and also decides what follows a
// pass.
//
// # Reading order
//
// reason.go has the reasons that only the manager decides. instance.go distinguishes the manager's own CRDMigrations
// from those of users. spec.go reads a spec, outcome.go converts a result to a status, occurrence.go documents how each
// reason shows in it, proof.go has how values are proven, record.go writes the status, metrics.go counts, and states.go exports states. reconciler.go has
// the manager's memory of a CRDMigration, journal.go its checkpoint, migration.go advances it, and reconcile.go is the
// table of contents. A file uses only files before it.
package crdmigration
