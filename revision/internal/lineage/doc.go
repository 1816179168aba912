// Package lineage says which ControllerRevision replaces which. The revisions say it
// themselves, in annotations that the manager and the command line both read.
//
// Read annotations.go, what one revision says, then replacement.go and name.go, what a new
// revision is to say and how it is named, then index.go, what all revisions of a namespace say.
package lineage
