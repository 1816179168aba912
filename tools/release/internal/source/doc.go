// Package source makes the commit that a release tags, and its modules as a GOPROXY serves them.
//
// In the tree, modules require each other at v0.0.0, with replace lines. The commit of a release requires them at the
// version of the release, without these lines. Its parent is the commit from which the release is made; author and time
// are those of the parent, so that everyone makes the same commit. Made from that commit itself, a release is the same.
//
// # Reading order
//
// module.go decides what is published, and rewrites go.mod, go.sum and Chart.yaml. repository.go asks git. release.go makes
// the commit and the modules. A file uses only files before it.
package source
