// Package permission lists what RBAC has to allow for each command, and renders it as
// a manifest.
//
// One list for each command decides both: a command asks the API server for the
// permissions on its list before it writes, and `godwit rbac` prints the roles that
// hold them. The lists are in the rooms of the domains, such as crd/crdpermission. They build on
// what the libraries say about their requests.
//
// It is pure and sends no requests.
//
// # Reading order
//
// permission.go has the nouns, command.go is a command with its list, and manifest.go renders roles. A file uses only files
// before it.
package permission
