// Package resource has the commands that rewrite the objects of any resource in etcd, after a change of the encryption key or
// of the version at which Kubernetes stores them: `godwit resource`.
//
// Package resource of internal/storageversion decides and acts. The commands select resources, wait if it requires a
// wait, and convert its reports to the contract of package resourcereport.
//
// # Reading order
//
// selection.go chooses resources. session.go is the connection of a command, and finds them. progress.go shows the progress of a run.
// The commands are in plan.go, run.go and verify.go, and resource.go is their parent. A file uses only files before it.
package resource
