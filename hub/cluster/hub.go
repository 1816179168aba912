package cluster

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/resource"
)

// Hub is a hub in one migration, as its source or as its target.
type Hub struct {
	Client client.Client
	// UID of the ManagedClusterMigration.
	UID string
	// Rules select what moves with a cluster, and are what may be applied; those of package
	// resource unless set.
	Rules []resource.Rule
	// BootstrapNamespace is where the import controller reads bootstrap secrets;
	// multicluster-engine unless set.
	BootstrapNamespace string
}

// Moving returns the rules of what moves with a cluster.
func (h Hub) Moving() []resource.Rule {
	if h.Rules == nil {
		return resource.Rules()
	}
	return h.Rules
}

// BootstrapSecret returns a Secret, without its content, that a KlusterletConfig may name.
func (h Hub) BootstrapSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(h.BootstrapNamespace, "multicluster-engine"), Name: name}}
}
