// Package cli is the command line of godwit, which is also kubectl's plugin of
// that name.
//
// Data goes to stdout, in one of the formats of package report; progress,
// warnings, questions and errors go to stderr. Whatever would change a cluster
// asks first on a terminal and refuses elsewhere unless told --yes. Every
// refusal and error is one line: the object, the cause, and what to do next.
//
// Commands decide nothing about a migration, crdmigrator and revision do: they choose
// the targets, carry plans out one after the other, wait where the library says to
// wait, and turn what it reports into the contract of package report.
//
// Read root.go and exit.go, then plan.go, run.go with runner.go, verify.go, and
// check.go with input.go; lint.go reads source and no cluster. What is about stashed
// objects begins in revision.go: revisionplan.go, revisionrun.go with revisionend.go
// and steps.go, revisionstatus.go, revisionrollback.go; revisionrights.go finds the
// rights that are missing.
// session.go and problem.go talk to the cluster and explain what it answers;
// target.go and suggest.go find the definitions meant; console.go, progress.go,
// bar.go and line.go own stderr.
package cli
