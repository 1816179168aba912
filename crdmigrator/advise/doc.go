// Package advise compares two releases of a CRD and says for each change of the schema how existing and new
// objects get from the one to the other: by a webhook, by validation, by late initialization into the
// status, or by the controller.
//
// [For] is pure: two CRDs in, advice out. It follows one matrix ([Change] to [Approach]). Two schemas do not
// show everything: whether the values that a changed structure needs are in the object or in the external
// system, and whether a new field of the status has to be filled for existing objects. The approach is then
// Undecided, with the approaches to choose from, until the author answers ([Answer]).
//
// It does not decide whether a cluster may get the release: package releasecheck does.
//
// Read advise.go, then compare.go, and last constraint.go.
package advise
