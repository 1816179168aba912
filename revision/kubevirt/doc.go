// Package kubevirt is the family of KubeVirt's instance types and preferences, a
// copy of which KubeVirt stores in ControllerRevisions for each VirtualMachine.
//
// It reads what KubeVirt has ever stored, with nothing of KubeVirt's own: since
// v1.7, KubeVirt can no longer read v1alpha1 and v1alpha2, and the Go types are gone
// from its module. What it makes of v1alpha1 and v1alpha2 is what the conversions of
// KubeVirt v1.6.3 made, and its revisions are called as KubeVirt ≥ 1.3 calls them.
//
// It does no I/O, it never rewrites data that is already at the version asked for,
// and it guesses nothing: what neither data, name, labels nor a reference say is an
// error. It has no conversion to v1, which KubeVirt has not released.
//
// # Reading order
//
// kinds.go and identity.go name what is stored. references.go says which objects refer to a revision. parse.go reads JSON that
// may be hostile, and shapes.go compares it with shapes.json, the fields of KubeVirt's types. remember.go keeps what equal
// data were found to hold. decode.go reads a revision, convert.go converts its object, and compose.go makes the revision that
// replaces it. software.go has what the releases of KubeVirt do. A file uses only files before it.
package kubevirt
