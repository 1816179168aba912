package storageversion

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// RequiredPermissions lists the permissions without which [Migrator.Run] refuses to begin. The
// permission to get the CustomResourceDefinition is needed as well. A resource "*" stands for
// all resources of its group.
func RequiredPermissions(objects schema.GroupResource, o Options) []decision.Grant {
	needed := []decision.Grant{{Verb: "list", Resource: objects}}
	write := o.Write.OrDefault()
	written := objects
	if sub := write.Subresource(); sub != "" {
		written.Resource += "/" + sub
	}
	for _, verb := range write.Verbs() {
		needed = append(needed, decision.Grant{Verb: verb, Resource: written})
	}
	crd := objects.String()
	if objects.Resource == "*" {
		crd = ""
	}
	if !o.NoTrim && !o.DryRun {
		status := schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions/status"}
		needed = append(needed, decision.Grant{Verb: "patch", Resource: status, Name: crd})
	}
	if o.annotates() && !o.DryRun {
		needed = append(needed, decision.Grant{Verb: "patch", Resource: kube.CRDs, Name: crd})
	}
	return needed
}

// annotates reports whether checkpoints are annotations of the CustomResourceDefinition.
func (o Options) annotates() bool {
	_, annotation := o.Journal.(*evidence.AnnotationJournal)
	return annotation || o.Journal == nil
}

// cleanupGrant is the permission that the cleanup of managedFields needs with every write.
func cleanupGrant(objects schema.GroupResource) decision.Grant {
	return decision.Grant{Verb: "patch", Resource: objects}
}

// OptionalPermissions lists the permissions without which [Migrator.Observe] knows less and
// [Migrator.Run] may have to wait longer.
func OptionalPermissions(objects schema.GroupResource, o Options) []decision.Grant {
	helpful := []decision.Grant{leaseGrant, endpointGrant}
	for _, group := range storageMigrationGroups {
		helpful = append(helpful, decision.Grant{Verb: "list", Resource: schema.GroupResource{Group: group, Resource: "storageversionmigrations"}})
	}
	if !o.Skips(decision.CleanupManagedFieldsPhase) && !o.DryRun && !o.Write.OrDefault().PatchesObject() {
		helpful = append(helpful, cleanupGrant(objects))
	}
	return helpful
}

// leaseGrant is the permission to list the API servers.
var leaseGrant = decision.Grant{
	Verb: "list", Namespace: metav1.NamespaceSystem,
	Resource: schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"},
}

// endpointGrant is the permission to list the addresses of the API servers.
var endpointGrant = decision.Grant{
	Verb: "list", Namespace: metav1.NamespaceDefault,
	Resource: schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"},
}

// ServerPermissions lists the permission to list the API servers.
func ServerPermissions() []decision.Grant { return []decision.Grant{leaseGrant} }

// storageMigrationGroups serve a kind StorageVersionMigration: Kubernetes'
// own, and kube-storage-version-migrator's.
var storageMigrationGroups = []string{"storagemigration.k8s.io", "migration.k8s.io"}
