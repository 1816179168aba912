// Package absence reads again, live, the revisions that references name and that a scan did not
// find.
//
// A scan reads one list after the other. An object that is deleted in between takes its
// revisions along, and in a namespace that is being deleted revisions may go first. Neither
// needs a restore from a backup. What was not read again is told apart from what is missing.
//
// Read absence.go, then item.go, which decides by it, then reader.go.
package absence
