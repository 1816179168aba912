package cluster

import (
	"cmp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Kinds are remembered if it is set.
	Kinds *Kinds
}

// Kinds remembers which kinds a hub serves, for the time of one command. A mapper remembers
// only those that are served: it reads all that the API server serves each time that it is
// asked for another one. The zero value is ready.
type Kinds struct {
	mutex sync.Mutex
	// known has nil for a kind that the hub does not serve.
	known map[schema.GroupKind]*schema.GroupVersionKind
}

// served returns the version at which the hub serves a kind, or nil if it does not.
func (h Hub) served(kind schema.GroupKind) (*schema.GroupVersionKind, error) {
	k := h.Kinds
	if k == nil {
		k = &Kinds{}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if version, ok := k.known[kind]; ok {
		return version, nil
	}
	if k.known == nil {
		k.known = map[schema.GroupKind]*schema.GroupVersionKind{}
	}
	mapping, err := h.Client.RESTMapper().RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		k.known[kind] = nil
	case err != nil:
		return nil, err
	default:
		k.known[kind] = &mapping.GroupVersionKind
	}
	return k.known[kind], nil
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
