// Package fieldmigration migrates objects from the fields of one release of an API to those of the next. It is for
// changes within one version of a CRD, which no conversion webhook sees: a new required field, a renamed field, a field
// that becomes immutable.
//
// A [Migration] is a pure function from fields to fields. Admission applies it to new objects and to each update: as a
// [Webhook], or, if CEL can express it ([Steps]), as a MutatingAdmissionPolicy, which also works while no webhook is
// up. [Existing] sends existing objects through the same admission, with empty patches. A controller that observes
// never writes a spec.
//
// API servers call admission several times. [Migration.Check] checks on samples, and on objects generated from them,
// that applying a migration twice equals applying it once.
//
// [Constraints] returns CEL rules for the fields of the key of an external resource: the fields can't change, can't be
// removed, and must have the form that the codec of the external name requires.
//
// The package does not convert between versions, and does not decide which approach a change needs. Package
// crdmigrator/advise does that.
//
// # Reading order
//
// migration.go applies a function to an object. mixer.go and check.go test it. step.go has changes that CEL can
// express, and policy.go generates the CEL. webhook.go and existing.go apply a migration to new and to existing
// objects. key.go has the rules for keys. A file uses only files before it.
package fieldmigration
