// Package apierror says what the answer of an API server means: the one classification for
// all migrations.
//
// The API server gives one status code and one reason to different facts: a 403 is the
// authorizer's or a policy's, a 500 is a webhook's or damaged bytes of etcd. Its words tell
// them apart. These words are Kubernetes' own, and each expression here names the source file
// that they come from.
//
// It decides nothing: what a class means for an object is the migration's to say. What a walk
// retries by default is walk.Transient, which this package builds on.
//
// Read answer.go, then words.go. Each file uses only the files after it.
package apierror
