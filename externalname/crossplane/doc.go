// Package crossplane makes the external names of a Crossplane provider follow one contract. The author of a provider
// writes functions that read, create, update and delete one kind ([External]), and the form of its names (an
// externalname.Scheme). [Resource] builds a controller from them, on crossplane-runtime's managed reconciler. [Wrap]
// adds single rules to an existing client.
//
// An external name states that a resource exists, and which one it is. The user sets it to import a resource, or Create
// sets it. A resource is looked up only by it. The package refuses to adopt a resource that is not named, and to create
// a second one when the outcome of a creation is unknown. It writes only the annotations, the finalizer and the status
// of a managed resource.
//
// # Observe
//
// Function decide in decide.go is the contract, without I/O. The rows are tried from top to
// bottom; "answer" is what the external system says.
//
//	| the object says                     | answer                     | result
//	| a malformed name                    | is not asked               | error InvalidError
//	| a pending operation                 | running                    | in progress: neither created nor updated
//	|                                     | ended with a key           | the name is bound, then as below
//	|                                     | failed                     | absent, with an event
//	|                                     | unknown operation          | as an interrupted creation
//	| a name                              | Get finds it               | present; the name is bound
//	| a name, and an update renames it    | Get finds the new name     | present; the new name is bound
//	| a name, and another bound name      | Get finds the bound name   | error NameChangedError
//	| no name, and a bound name           | Get finds the bound name   | error NameChangedError
//	| an interrupted creation             | its operation is found     | as a pending operation
//	|                                     | one match comes from it    | present; the name is bound
//	|                                     | several come from it       | error MultipleMatchesError
//	|                                     | too early to say           | error ErrOutcomeUnknown
//	|                                     | no match                   | absent
//	|                                     | only matches of others     | error AdoptionRefusedError; absent while deleting
//	|                                     | there is no Find           | error ErrOutcomeUnknown
//	| a name that was never bound         | not found                  | absent, with an event; NeverFoundError with ImportMustExist
//	| a name that was bound               | not found                  | absent: the resource was deleted
//	| a legacy hint, or no name and       | Find: no match             | absent
//	| FindUnnamed                         | Find: one match            | present; the name is bound
//	|                                     | Find: several              | error MultipleMatchesError
//	| no name                             | is not asked               | absent
//
// Absent becomes an error if the policies allow neither Create nor observing alone, and if the
// key that the spec asks for can't be a name. Any other error of Get, ErrParentNotFound
// included, is returned. After an error, nothing is written to the external system.
//
// # Create, Update, Delete
//
//	| call   | answer                  | result
//	| Create | a key                   | name and bound name are written, the creation is recorded
//	|        | an operation            | the operation is written; Observe finds the key
//	|        | ErrAlreadyExists        | error with the command that adopts; the name stays as it was
//	|        | no answer               | error; the creation stays recorded as interrupted
//	|        | another error           | error; the name stays as it was
//	| Update | a key                   | a changed name is written; it was announced before the update
//	|        | an error                | returned as it is
//	| Delete | deleted, or not found   | done; the next observation checks that it is gone
//	|        | state is Deleting       | Delete is not called
//	|        | another object has the  | error SharedNameError; Delete is not called
//	|        | name, and may create    |
//	|        | an error                | returned as it is
//
// # What is written
//
// Before Create, crossplane-runtime writes create-pending, and with it [AnnotationToken]. The outcome removes
// create-pending, so create-pending exists exactly while an outcome is unknown. [AnnotationBoundName] is an annotation
// and not part of the status, because a restore often drops the status. Every write patches single annotations at the
// resourceVersion that was read: a stale cache causes a conflict, and other clients' annotations are kept.
//
// # Metrics
//
// godwit_external_operations_total counts the calls of an author's functions by kind, operation
// and outcome. godwit_external_drift_objects are the objects of a kind that differ.
// godwit_external_name_legacy_total counts observations of former names by kind and form. They are
// in the registry of controller-runtime, which the manager of the provider serves.
//
// # Reading order
//
// errors.go, external.go and resource.go have the types of an author, and describe.go documents a kind. condition.go
// sets conditions. metrics.go counts calls. decide.go decides. journal.go writes annotations, drift.go and claims.go
// write conditions. reconciliation.go is one pass over an object: explain.go adds remedies to its errors, observe.go
// reads, and write.go creates, updates and deletes. status.go reports a status that the API server refuses. setup.go adds
// the controller to a manager. wrap.go has the rules for existing clients. A file uses only files before it.
package crossplane
