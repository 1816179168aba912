// Package crdmigration carries out CRDMigrations: it plans and runs the migration of the CRD
// that each is named after, and writes into the status what was done.
//
// It never touches an object of a migrated kind itself: that is the task of package
// storageversion, which also decides what follows a pass.
//
// Read reconcile.go, migration.go, spec.go, outcome.go, record.go and journal.go in this order.
// instance.go tells the manager's own CRDMigrations from those of users.
package crdmigration
