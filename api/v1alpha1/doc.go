// Package v1alpha1 holds the kinds of group godwit.dev that clusters store.
//
// A [CRDMigration] is the migration of one CustomResourceDefinition's objects, as
// the manager carries it out: what users ask for in its spec, which is theirs
// alone, and how far it is in its status, which is the manager's.
//
// +kubebuilder:object:generate=true
// +groupName=godwit.dev
package v1alpha1

//go:generate env GOWORK=off go tool -modfile=../../tools/controller-gen/go.mod controller-gen object paths=. crd:maxDescLen=400 output:crd:dir=crd

// The chart can't read beyond its folder.
//go:generate sh -c "cp crd/*.yaml ../../charts/godwit/files/crds/"
