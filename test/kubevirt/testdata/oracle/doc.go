// Package oracle compares how Godwit converts KubeVirt's stored objects with
// KubeVirt's own types and conversions, in kubevirt.io/api v1.6.3, the last release
// with v1alpha1 and v1alpha2. Godwit itself must not require that release, since a
// program that requires a later release could then not compile Godwit.
//
// It is a separate module outside the workspace, because kubevirt.io/api requires
// modules of 2020. Some of their packages are modules of their own today, so that
// etcd's client would find each of these packages twice.
//
// Read oracle_test.go, then fuzz_test.go. The program shapes writes down the fields
// of KubeVirt's types.
package oracle
