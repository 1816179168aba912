// Package fieldmigration gets objects from the fields of one release of an API to those of the next. It is
// for changes within one version of a CRD, which no conversion webhook sees: a new required field, a
// renamed field, a field that becomes immutable.
//
// A [Migration] is a pure function from fields to fields. Admission applies it, to new objects and to each
// update: as a [Webhook], or, where CEL can say it ([Steps]), as a MutatingAdmissionPolicy, which works
// also while no webhook is up. [Existing] brings the objects that exist past the same admission, by empty
// patches. Observations of a controller never write a spec.
//
// API servers call admission several times. [Migration.Check] proves on samples, and on objects that are
// made of them, that applying a migration twice equals applying it once.
//
// [Constraints] are CEL rules for the fields that make the key of an external resource: the fields can't
// change, can't be removed, and have the form that the codec of the external name requires.
//
// What the package does not do: it does not convert between versions, and it does not decide which change
// needs which approach. Package crdmigrator/advise does that.
//
// # Reading order
//
// migration.go applies a function to an object. mixer.go and check.go test it. step.go has changes that
// CEL can say, policy.go says them. webhook.go and existing.go are the two ways of an object to the
// migration. key.go has the rules for keys. A file uses only files before it.
package fieldmigration
