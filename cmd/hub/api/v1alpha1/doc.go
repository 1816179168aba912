// Package v1alpha1 holds the kind of group global-hub.open-cluster-management.io that
// the migration of managed clusters between hubs is asked for with.
//
// A [ManagedClusterMigration] that users wrote for multicluster-global-hub is valid
// here, unless it is one that could never end well: the API server refuses those, each
// with a sentence. A CustomResourceDefinition of this name without the annotation
// [OwnerAnnotation] is another project's, and no controller of Godwit runs on it.
//
// +kubebuilder:object:generate=true
// +groupName=global-hub.open-cluster-management.io
package v1alpha1

//go:generate env GOWORK=off go tool -modfile=../../../../tools/controller-gen/go.mod controller-gen object paths=. crd:maxDescLen=400 output:crd:dir=crd
//go:generate sh -c "cp crd/*.yaml ../../../../charts/godwit/files/crds/"
