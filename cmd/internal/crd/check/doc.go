// Package check has the command `godwit crd check`: is a release of CRDs safe, and if not, what are the steps?
//
// Packages releasecheck, doctor, bridge and advise of crdmigrator decide, and releasecheck and doctor read the cluster. The
// command reads files, gives each package its facts, joins what they find in one check for each CRD, and writes the steps.
//
// # Reading order
//
// release.go has the flags, and reads the files. script.go writes the steps, and steps.go decides about them.
// observe.go reads the cluster, and references.go finds references to versions. result.go prints the result. previous.go and
// compare.go compare with files instead. check.go is the command, and commands.go has the commands that check has replaced. A file uses only files before it.
package check
