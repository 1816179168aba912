// Package v1alpha1 contains the kind of group global-hub.open-cluster-management.io with which users request a
// migration of managed clusters between hubs.
//
// A [ManagedClusterMigration] that users wrote for multicluster-global-hub is valid here too. The API server refuses
// those that could never succeed, each with a message. A CustomResourceDefinition of this name without the annotation
// [OwnerAnnotation] belongs to another project, and Godwit runs no controller for it.
//
// +kubebuilder:object:generate=true
// +groupName=global-hub.open-cluster-management.io
package v1alpha1

//go:generate env GOWORK=off go tool -modfile=../../../../tools/controller-gen/go.mod controller-gen object paths=. crd:maxDescLen=400 output:crd:dir=crd
//go:generate sh -c "cp crd/*.yaml ../../../../charts/godwit/files/crds/"
