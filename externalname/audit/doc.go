// Package audit finds external names that are lost, shared or written by two clients, and creations that have made several external
// resources, or that hang. It works for every provider on crossplane-runtime, also without code of Godwit.
//
// The package only reads: the managed resources of some kinds, and the events of their creations. What it can't read is in the result
// with its cause. It does not read an external system, so that some findings are not certain: these have the severity Warns, and ask
// the user to compare. No fix of a finding deletes an object or an external resource.
//
// # Reading order
//
// reason.go has the reasons and their fixes, fact.go what is read of a managed resource, and decide.go decides on it. read.go reads.
package audit
