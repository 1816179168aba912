// Package cluster makes a control plane one that has KubeVirt's API: its CRDs,
// and objects with a status. KubeVirt itself is not there.
//
// The CRDs are generated from KubeVirt's Go types by controller-gen, once, into
// bin/kubevirt: KubeVirt releases no YAML of them in its module, and this repository
// keeps no copy. What KubeVirt's operator adds to what its types say, which is the
// scope, the storage version and the subresource status, is added here.
//
// Read crd.go, object.go, and namespace.go.
package cluster
