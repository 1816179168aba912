// Package externalname has the commands for the external names of managed resources: `godwit
// externalname`.
//
// # Reading order
//
// naming.go evaluates the expression for a name. session.go is a connection for the managed resources of one kind, and
// selection.go has the flags that select them. mapping.go has the flags that map them to another kind. progress.go shows
// the progress of a run, and end.go prints its result. The commands are in plan.go, run.go, rollback.go, ready.go, book.go, which saves
// names, restore.go and audit.go, and externalname.go is their parent. A file uses only files before it.
package externalname
