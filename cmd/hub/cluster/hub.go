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

// Hub is the source hub or the target hub of one migration.
type Hub struct {
	Client client.Client
	// UID of the ManagedClusterMigration.
	UID string
	// Rules select the objects that move with a cluster and that may be applied; those of package resource unless set.
	Rules []resource.Rule
	// BootstrapNamespace is where the import controller reads bootstrap secrets;
	// multicluster-engine unless set.
	BootstrapNamespace string
	// Kinds caches the kinds that the hub serves. Nil means no cache.
	Kinds *Kinds
	// Emptied records the clusters whose objects a command has deleted. Nil means no record.
	Emptied *Emptied
	// Written records since when works have what a command waits for. Nil means that the present generation counts.
	Written *Written
	// Confirmations are the denials of a command. If nil, no denial becomes final, and a pass waits.
	Confirmations *Confirmations
	// Progress is called during a pass over many clusters with those that are done since the last call, and with what was not found for
	// some of them; one call at a time. A pass over hundreds of clusters takes long, and the other hub can continue with the
	// first of them. Nil means no call.
	Progress func(done []string, gone map[string]string)
	// unused caches which kinds have no object, for one pass.
	unused *unused
	// common caches what is in each namespace, for one pass.
	common *common
	// batchReads has the objects that one pass reads for all of its clusters; nil if it reads clusters one by one.
	batchReads *batchReads
}

// Final is [Confirmations.Final] for the hub.
func (h Hub) Final(ctx context.Context, err error) bool {
	c := h.Confirmations
	if c == nil {
		c = &Confirmations{}
	}
	return c.Final(ctx, h.Client, err)
}

// Pass returns the hub for one pass over clusters. It reads only once, and not for each cluster, whether the hub has
// any object of a kind.
func (h Hub) Pass() Hub {
	h.unused = &unused{known: map[schema.GroupKind]bool{}}
	h.common = &common{names: map[string]map[string]bool{}}
	return h
}

// common caches the names of the objects of core kinds in namespace default. Some tools write an object of the same name to each
// namespace, also to those of clusters.
type common struct {
	mutex sync.Mutex
	names map[string]map[string]bool // by kind
}

// unused caches which kinds have no object on a hub. It lives for one pass only, because a user may create the first
// object at any time.
type unused struct {
	mutex sync.Mutex
	known map[schema.GroupKind]bool
}

// isUnused reports whether no namespace of the hub has an object of a kind. Outside a pass, it returns false.
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

// Emptied records the clusters of which only the ManagedCluster is left, so that a pass which waits for its deletion
// reads nothing else. The record is lost with the agent: the next process looks for objects again. The zero value is
// ready.
type Emptied struct {
	mutex sync.Mutex
	names map[string]bool
}

// Add records a cluster. It does nothing on a nil Emptied.
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

// Written records the first generation of each cluster's klusterlet work that has what a command waits for. A later generation may come at any
// time, such as with another token, and does not make the cluster wait again. The record is lost with the agent: the next process begins
// with the present generation. The zero value is ready.
type Written struct {
	mutex       sync.Mutex
	generations map[string]int64
}

// since returns the first generation that was recorded for a cluster since the last call of forget. Without a record it is the present one.
func (w *Written) since(cluster string, present int64) int64 {
	if w == nil {
		return present
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.generations == nil {
		w.generations = map[string]int64{}
	}
	if _, ok := w.generations[cluster]; !ok {
		w.generations[cluster] = present
	}
	return w.generations[cluster]
}

func (w *Written) forget(cluster string) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.generations, cluster)
}

// Kinds caches which kinds a hub serves, for one command. A RESTMapper caches only the served kinds: it reads the whole
// discovery again for each kind that is not served. The zero value is ready.
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

// MigrationRules returns the rules that select the objects of a migration.
func (h Hub) MigrationRules() []resource.Rule {
	if h.Rules == nil {
		return resource.Rules()
	}
	return h.Rules
}

// BootstrapSecret returns an empty Secret in the namespace in which a KlusterletConfig may name it.
func (h Hub) BootstrapSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(h.BootstrapNamespace, "multicluster-engine"), Name: name}}
}
