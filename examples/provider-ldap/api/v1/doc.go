// Package v1 has the kinds of the provider for LDAP directories.
//
// +kubebuilder:object:generate=true
// +groupName=ldap.example.org
package v1

//go:generate env GOWORK=off go tool -modfile=../../../../tools/controller-gen/go.mod controller-gen object paths=. crd:maxDescLen=400 output:crd:dir=../../crds
