// Package permission lists what RBAC has to allow for each command, and renders it as
// a manifest.
//
// One list for each command decides both: a command asks the API server for the
// permissions on its list before it writes, and `godwit rbac` prints the roles that
// hold them. The lists build on what the libraries say about their requests.
//
// It is pure and sends no requests.
//
// # Reading order
//
// permission.go has the nouns. crd.go, resource.go, revision.go, externalname.go, hub.go and version.go have the lists, of which
// plan.go makes one of all domains, list.go names the commands, and manifest.go renders their roles. A file uses only files before it.
package permission
