// Package source makes the commit that a release tags, and its modules as a GOPROXY serves them.
//
// In the tree, modules require each other at v0.0.0, with replace lines. In the commit of a release, they require each other at
// the version of the release, without these lines. The parent of this commit is the commit from which the release is made. The
// commit has the author and the time of its parent, so that every user makes the same commit. A release that is made from the
// commit of a release is the same release.
//
// # Reading order
//
// module.go decides which modules are published, and rewrites go.mod, go.sum and Chart.yaml. repository.go runs git. release.go
// makes the commit and the modules. A file uses only files before it.
package source
