// Package widget defines custom resources whose objects are migrated from one version to the other and back, and counts in
// etcd at which version their objects are stored.
//
// # Reading order
//
// widget.go defines a resource and creates objects, and copy.go copies them in etcd. check.go reads their versions in etcd. flip.go
// changes the storage version, and pass.go rewrites all objects: with an empty patch for each, or with godwit.
package widget
