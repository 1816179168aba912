package cluster

import "k8s.io/apimachinery/pkg/runtime/schema"

// AccountNamespace is where the bootstrap account of a hub is, unless the add-on that issues its
// tokens is in another one.
const AccountNamespace = "open-cluster-management-agent-addon"

// Annotations that the migration sets, and restores.
const (
	// AnnotationMigrating marks a cluster that is being moved, with the UID of the migration.
	AnnotationMigrating = "global-hub.open-cluster-management.io/migrating"
	// AnnotationKlusterletConfig names the KlusterletConfig of a ManagedCluster.
	AnnotationKlusterletConfig = "agent.open-cluster-management.io/klusterlet-config"
	// AnnotationNoAutoImport keeps the import controller from importing a cluster by the
	// admin kubeconfig that moves with it. From backplane 5.0 on, it also keeps the import
	// controller from changing the klusterlet: ManifestWorks become read-only.
	AnnotationNoAutoImport = "import.open-cluster-management.io/disable-auto-import"
	// AnnotationAccepted is set by OCM when it has accepted a cluster automatically. It does
	// not do so again while the annotation is there, so that false stays false.
	AnnotationAccepted = "open-cluster-management.io/automatically-accepted-on"
)

// LabelMigration is the UID of the migration that has created an object. Only such objects
// are deleted on the target hub. It is removed when the cluster has moved.
const LabelMigration = "godwit.dev/migration"

const (
	// annotationOwners lists the UIDs of the migrations that need a shared object.
	annotationOwners = "godwit.dev/migrations"
	// annotationContent is the hash of what the source has sent of an object.
	annotationContent = "godwit.dev/migration-content"
	// annotationOriginal has what the migration replaced in an object.
	annotationOriginal = "godwit.dev/migration-original"
)

// Kinds whose types are in no module that can be required.
var (
	KlusterletConfigKind      = schema.GroupVersionKind{Group: "config.open-cluster-management.io", Version: "v1alpha1", Kind: "KlusterletConfig"}
	KlusterletAddonConfigKind = schema.GroupVersionKind{Group: "agent.open-cluster-management.io", Version: "v1", Kind: "KlusterletAddonConfig"}
	ObservabilityAddonKind    = schema.GroupVersionKind{Group: "observability.open-cluster-management.io", Version: "v1beta1", Kind: "ObservabilityAddon"}
)

// LeaseName is the lease that a cluster's agent renews in the namespace of the cluster.
const LeaseName = "managed-cluster-lease"

// KlusterletWork is the ManifestWork by which a hub installs the klusterlet of a cluster,
// and with it the bootstrap kubeconfigs.
func KlusterletWork(cluster string) string { return cluster + "-klusterlet" }
