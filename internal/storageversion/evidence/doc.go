// Package evidence keeps what a run has proven, so that an interrupted run resumes: which CRD it migrates, since which
// resourceVersion every write is at the storage version, and up to which key every object is done.
//
// checkpoint.go is what survives the process, and run.go the evidence of one run under way. A file uses only files before it.
package evidence
