// Package crdmigration carries out CRDMigrations: it plans and runs the migration of the CRD
// that each is named after, and writes into the status what was done.
//
// It never touches an object of a migrated kind itself: that is the task of package
// storageversion, which also decides what follows a pass.
//
// # Reading order
//
// reason.go has the reasons that only the manager decides. instance.go tells the manager's own CRDMigrations from those of users. spec.go reads a spec,
// outcome.go turns a result into a status, occurrence.go says how each reason shows in it, record.go writes the
// status, metrics.go counts, and states.go tells states. reconciler.go is what the manager keeps of a CRDMigration, journal.go its
// checkpoint, migration.go advances it, and reconcile.go is the table of contents. A file uses only
// files before it.
package crdmigration
