// Package apierror classifies the answers of an API server, for all migrations.
//
// The API server uses one status code and one reason for different facts: a 403 comes from the
// authorizer or from a policy, a 500 from a webhook or from damaged bytes in etcd. The words of
// the message tell them apart. They come from the source files of Kubernetes that words.go
// names.
//
// The package does not decide what a class means for an object; the migration does. It builds
// on walk.Transient, which decides what a walk retries by default.
//
// Read answer.go, then words.go. Each file uses only the files after it.
package apierror
