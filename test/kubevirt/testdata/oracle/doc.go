// Package oracle holds Godwit's own reading of KubeVirt's stored objects to
// KubeVirt's: the types and conversions of kubevirt.io/api v1.6.3, the last release
// that has those of v1alpha1 and v1alpha2. Godwit itself must not need it, since
// no user of a later release could then compile it.
//
// It is a module of its own and outside the workspace, which would have to carry what
// kubevirt.io/api requires: modules of 2020 that hold packages which are modules of
// their own today, so that etcd's client finds each of them twice.
//
// Read oracle_test.go, then fuzz_test.go. The program shapes writes down what fields
// KubeVirt's types have.
package oracle
