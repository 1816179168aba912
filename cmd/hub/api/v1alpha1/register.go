package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of every kind here.
var GroupVersion = schema.GroupVersion{Group: "global-hub.open-cluster-management.io", Version: "v1alpha1"}

// AddToScheme registers the kinds.
var AddToScheme = func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ManagedClusterMigration{}, &ManagedClusterMigrationList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// CRDName is the name of the CustomResourceDefinition.
const CRDName = "managedclustermigrations.global-hub.open-cluster-management.io"

const (
	// OwnerAnnotation of the CustomResourceDefinition has the value [Owner] if the schema
	// is the one of this package. Its rules are what the controllers rely on.
	OwnerAnnotation = "godwit.dev/crd-owner"
	// Owner is the value of [OwnerAnnotation].
	Owner = "godwit"

	// RequestAnnotation of a migration asks for what its spec has no field for.
	RequestAnnotation = "global-hub.open-cluster-management.io/migration-request"
	// RequestRollback aborts a migration that is running, and repeats the rollback of one
	// that has failed.
	RequestRollback = "rollback"

	// Finalizer keeps a deleted migration until every cluster is where it belongs. A migration of which
	// nothing is left to do does not have it.
	Finalizer = "global-hub.open-cluster-management.io/migration-cleanup"
)
