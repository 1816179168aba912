// Package permission lists what RBAC has to allow for each command, and renders it as
// a manifest.
//
// One list for each command decides both: a command asks the API server for the
// permissions on its list before it writes, and `godwit rbac` prints the roles that
// hold them. The lists build on what the libraries say about their requests.
//
// It is pure and sends no requests. Read permission.go, then list.go, crd.go and
// revision.go, which have the lists, then manifest.go.
package permission
