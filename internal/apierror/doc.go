// Package apierror classifies the answers of an API server, for all migrations.
//
// The API server uses one status code and one reason for different facts: a 403 comes from the
// authorizer or from a policy, a 500 from a webhook or from damaged bytes in etcd. The words of
// the message tell them apart. They come from the source files of Kubernetes that words.go
// names.
//
// [Table] has the treatment of each request that failed, for all domains: what is retried, what is final, what the server
// confirms, and what the caller alone can decide. The package does not decide what a class means for an object; the
// migration does.
//
// Read table.go, answer.go, failure.go, then words.go.
package apierror
