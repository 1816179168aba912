// Package kubevirt tests how Godwit upgrades KubeVirt's stored objects.
//
// Package fixture has the objects that KubeVirt stores in ControllerRevisions, in every form. Package cluster
// adds KubeVirt's API to a control plane. testdata/oracle is a separate module that compares Godwit's conversions
// with KubeVirt's, and writes down the fields of KubeVirt's types.
package kubevirt

//go:generate env GOWORK=off go -C testdata/oracle run ./shapes ../../../../revision/kubevirt/shapes.json
