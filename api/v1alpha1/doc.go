// Package v1alpha1 holds the kinds of group godwit.dev that clusters store.
//
// A [CRDMigration] is the migration of the objects of one CRD, which the manager carries out. Its
// spec is what users ask for, and only users write it. Its status is how far the migration is, and
// only the manager writes it.
//
// # Reading order
//
// failure.go has an object that failed, and crdmigration.go the migration of a CRD.
// revisionpolicy.go, revisionupgrade.go and revisiontrigger.go have the upgrade of
// ControllerRevisions. conditions.go gives access to the conditions of all kinds, and register.go
// adds the kinds to a scheme. A file uses only files before it.
//
// +kubebuilder:object:generate=true
// +groupName=godwit.dev
package v1alpha1

//go:generate env GOWORK=off go tool -modfile=../../tools/controller-gen/go.mod controller-gen object paths=. crd:maxDescLen=400 output:crd:dir=crd

// The chart can't read beyond its folder.
//go:generate sh -c "cp crd/*.yaml ../../charts/godwit/files/crds/"
