// Package cluster adds KubeVirt's API to a control plane: its CRDs, and objects
// with a status. KubeVirt itself does not run.
//
// The CRDs are generated from KubeVirt's Go types by controller-gen, once, into
// bin/kubevirt: KubeVirt's module has no YAML of them, and this repository keeps no
// copy. As KubeVirt's operator does, the package adds the scope, the storage version
// and the subresource status, which the types do not have.
//
// Read crd.go, object.go, and namespace.go.
package cluster
