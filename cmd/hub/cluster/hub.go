package cluster

import (
	"cmp"
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
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
	// Emptied are the clusters whose objects a command has deleted, if it is set.
	Emptied *Emptied
	// Confirmations are those of a command, if it is set. Without them nothing is confirmed, and a pass waits.
	Confirmations *Confirmations
	// unused are the kinds without an object, in one pass.
	unused *unused
	// together has what one pass reads of all of its clusters; nil where they are read one by one.
	together *together
}

// Final is [Confirmations.Final] for the hub.
func (h Hub) Final(ctx context.Context, err error) bool {
	c := h.Confirmations
	if c == nil {
		c = &Confirmations{}
	}
	return c.Final(ctx, h.Client, err)
}

// Pass is the hub for one pass over clusters. It reads once, and not for each cluster, whether
// the hub has objects of a kind at all.
func (h Hub) Pass() Hub {
	h.unused = &unused{known: map[schema.GroupKind]bool{}}
	return h
}

// unused remembers of which kinds a hub has no object, for the time of a pass: for longer, a
// user may create the first one.
type unused struct {
	mutex sync.Mutex
	known map[schema.GroupKind]bool
}

// isUnused reports whether no namespace of the hub has an object of a kind. Outside a pass, it
// says no.
func (h Hub) isUnused(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	u := h.unused
	if u == nil {
		return false, nil
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if none, ok := u.known[kind.GroupKind()]; ok {
		return none, nil
	}
	first := &metav1.PartialObjectMetadataList{}
	first.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := h.Client.List(ctx, first, client.Limit(1))
	if err != nil && !apierrors.IsForbidden(err) { // a rule of a user with names needs no permission to list
		return false, err
	}
	u.known[kind.GroupKind()] = err == nil && len(first.Items) == 0
	return u.known[kind.GroupKind()], nil
}

// Emptied remembers the clusters whose objects were deleted, but for the ManagedCluster, so
// that a pass which waits for the end of that reads nothing else. What it remembers is lost
// with the agent: the next one looks for objects again. The zero value is ready.
type Emptied struct {
	mutex sync.Mutex
	names map[string]bool
}

// Add remembers a cluster. A nil Emptied forgets it.
func (e *Emptied) Add(cluster string) {
	if e == nil {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[cluster] = true
}

// Has reports whether the objects of a cluster were deleted.
func (e *Emptied) Has(cluster string) bool {
	if e == nil {
		return false
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.names[cluster]
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
