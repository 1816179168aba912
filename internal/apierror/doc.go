// Package apierror classifies the answers of an API server, for all migrations.
//
// The API server uses one status code and one reason for different facts: a 403 comes from the authorizer or from a
// policy, a 500 from a webhook or from damaged bytes in etcd. Only the text of the message distinguishes them. words.go
// names the source files of Kubernetes with these texts.
//
// [Table] has the treatment of each failed request, for all domains: retry, final, the end of the run, to be confirmed by the
// server, or for the caller to decide. The package does not decide what a class means for an object; the migration does.
//
// Read table.go, answer.go, failure.go, then words.go.
package apierror
