// Package crdmigration carries out CRDMigrations: it plans and runs the migration
// of the CustomResourceDefinition that each is named after, and writes down how
// far it is.
//
// It never touches an object of the migrated kind itself: that is the business of
// package crdmigrator. Read reconcile.go, pass.go, conditions.go, status.go in this
// order.
package crdmigration
