// Package permission has the permissions of each command, and renders them as a manifest.
//
// Each command has one list of permissions. The command checks them before it writes, and `godwit rbac` prints the
// roles that grant them. The lists are in the packages of the domains, such as crd/crdpermission, and use the
// permissions that the libraries declare.
//
// It is pure and sends no requests.
//
// # Reading order
//
// permission.go has the nouns, command.go is a command with its list, and manifest.go renders roles. A file uses only files
// before it.
package permission
