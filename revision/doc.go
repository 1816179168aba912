// Package revision upgrades objects that are stashed in ControllerRevisions to a
// newer version of their API, so that the old version can be dropped.
//
// It never clears a reference, never removes a revision that somebody refers to, and
// never puts an object as it is now in the place of one that was stashed. What a family
// of stashes knows, as package kubevirt does, it asks of a [Family].
//
// Read plan.go, which decides, with target.go, claim.go and fix.go; census.go, who refers to
// what; then round.go and its stages create.go, repoint.go, settle.go and removal.go, with
// rollback.go; counterpart.go, what a restore looks up, and gone.go, what is missing; run.go
// and upgrader.go are what callers see, survey.go says which versions can be dropped.
// client.go does the I/O, and controllerrevision.go that of single revisions.
package revision
