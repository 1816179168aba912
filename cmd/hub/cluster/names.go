package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// AccountNamespace is the namespace in which the add-on of ManagedServiceAccounts makes its accounts, unless it says another one.
const AccountNamespace = "open-cluster-management-agent-addon"

// Annotations that the migration sets, and restores.
const (
	// AnnotationMigrating marks a cluster that is being moved, with the UID of the migration.
	AnnotationMigrating = "global-hub.open-cluster-management.io/migrating"
	// AnnotationKlusterletConfig names the KlusterletConfig of a ManagedCluster.
	AnnotationKlusterletConfig = "agent.open-cluster-management.io/klusterlet-config"
	// AnnotationNoAutoImport prevents the import controller from importing a cluster with the admin kubeconfig that
	// moves with it. Since backplane 5.0, it also prevents changes of the klusterlet: ManifestWorks become read-only.
	AnnotationNoAutoImport = "import.open-cluster-management.io/disable-auto-import"
	// AnnotationAccepted is set by OCM when it has accepted a cluster automatically. OCM does not accept the cluster
	// again while the annotation exists, so hubAcceptsClient=false stays false.
	AnnotationAccepted = "open-cluster-management.io/automatically-accepted-on"
	// AnnotationRetain prevents the import controller from deleting the namespace of a cluster that has left the hub.
	AnnotationRetain = "open-cluster-management.io/retain-namespace"
)

// LabelMigration is the UID of the migration that has created an object. Only such objects
// are deleted on the target hub. It is removed when the cluster has moved.
const LabelMigration = "godwit.dev/migration"

// AnnotationProof is on the namespace of a cluster and on its ManagedCluster on the target hub, with a random value. It proves that the migration
// has created the ManagedCluster.
const AnnotationProof = "godwit.dev/migration-proof"

// AnnotationIdentity is on the namespace of a cluster on the target hub, with the identity that the cluster has at the source hub.
const AnnotationIdentity = "godwit.dev/migration-identity"

const (
	// annotationOwners lists the UIDs of the migrations that need a shared object.
	annotationOwners = "godwit.dev/migrations"
	// annotationContent is the hash of the object as the source sent it.
	annotationContent = "godwit.dev/migration-content"
	// annotationOriginal has the values that the migration replaced in an object.
	annotationOriginal = resource.OriginalAnnotation
)

// Kinds whose Go types no importable module has.
var (
	KlusterletConfigKind      = schema.GroupVersionKind{Group: "config.open-cluster-management.io", Version: "v1alpha1", Kind: "KlusterletConfig"}
	KlusterletAddonConfigKind = schema.GroupVersionKind{Group: "agent.open-cluster-management.io", Version: "v1", Kind: "KlusterletAddonConfig"}
	AddOnKind                 = schema.GroupVersionKind{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedClusterAddOn"}
	ObservabilityAddonKind    = schema.GroupVersionKind{Group: "observability.open-cluster-management.io", Version: "v1beta1", Kind: "ObservabilityAddon"}
)

// LeaseName is the name of the Lease that a cluster's agent renews, in the namespace of the cluster.
const LeaseName = "managed-cluster-lease"

// KlusterletWork returns the name of the ManifestWork with which a hub installs the klusterlet of a cluster and its
// bootstrap kubeconfigs.
func KlusterletWork(cluster string) string { return cluster + "-klusterlet" }

// KlusterletCRDWork returns the name of the ManifestWork with which a hub installs the CRD of Klusterlets on a cluster.
func KlusterletCRDWork(cluster string) string { return KlusterletWork(cluster) + "-crds" }

// maxNamed bounds the objects that a message names.
const maxNamed = 3

// Few returns the first of some names, and how many others there are.
func Few(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}
