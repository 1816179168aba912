// Package kubevirt tests what Godwit makes of KubeVirt's stored objects.
//
// Package fixture has what KubeVirt stores in ControllerRevisions, in every form; package cluster makes a
// control plane one that has KubeVirt's API. testdata/oracle is a module of its own
// that compares conversions with those of KubeVirt, and writes down the fields of
// KubeVirt's types.
package kubevirt

//go:generate env GOWORK=off go -C testdata/oracle run ./shapes ../../../../revision/kubevirt/shapes.json
