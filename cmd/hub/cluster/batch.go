package cluster

import (
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const (
	// minBatchClusters is the least number of clusters for batch reads; fewer are read one by one.
	minBatchClusters = 8
	// listFactor is how many objects a list may have for each one that the pass needs. If the hub has more, the pass
	// reads cluster by cluster: most of the list would belong to clusters that stay.
	listFactor = 8
	// metadataFactor is the same for a list of metadata, which is small.
	metadataFactor = 4 * listFactor
)

// Kinds of the core group that move with a cluster.
const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// batchReads has the objects that a pass reads for all of its clusters.
type batchReads struct {
	clusters batch[clusterv1.ManagedCluster]
	leases   batch[coordinationv1.Lease]
	requests batch[certificatesv1.CertificateSigningRequest]
	addOns   batch[metav1.PartialObjectMetadata]
	// core has the metadata of all objects of a core kind.
	core map[string]*batch[metav1.PartialObjectMetadata]
	// owned has the metadata of the objects that the migration has created, by kind.
	owned ownedBatches
}

// ownedBatches are made when they are needed: rules of users have further kinds.
type ownedBatches struct {
	limit  int64
	mutex  sync.Mutex
	byKind map[schema.GroupKind]*batch[metav1.PartialObjectMetadata]
}

func (o *ownedBatches) of(kind schema.GroupKind) *batch[metav1.PartialObjectMetadata] {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.byKind == nil {
		o.byKind = map[schema.GroupKind]*batch[metav1.PartialObjectMetadata]{}
	}
	if o.byKind[kind] == nil {
		o.byKind[kind] = &batch[metav1.PartialObjectMetadata]{limit: o.limit}
	}
	return o.byKind[kind]
}

// newBatchReads returns the batch reads of a pass over a number of clusters, or nil if the clusters are too few.
func newBatchReads(clusters int) *batchReads {
	if clusters <= minBatchClusters {
		return nil
	}
	limit := int64(listFactor * clusters)
	return &batchReads{
		clusters: batch[clusterv1.ManagedCluster]{limit: limit},
		leases:   batch[coordinationv1.Lease]{limit: limit},
		requests: batch[certificatesv1.CertificateSigningRequest]{limit: limit},
		addOns:   batch[metav1.PartialObjectMetadata]{limit: int64(metadataFactor * clusters)},
		core: map[string]*batch[metav1.PartialObjectMetadata]{
			kindSecret: {limit: int64(metadataFactor * clusters)}, kindConfigMap: {limit: int64(metadataFactor * clusters)},
		},
		owned: ownedBatches{limit: int64(metadataFactor * clusters)},
	}
}

// ofAddOns returns the batch of ManagedClusterAddOns. Like [batchReads.ofCore] it is nil in a pass without batches.
func (b *batchReads) ofAddOns() *batch[metav1.PartialObjectMetadata] {
	if b == nil {
		return nil
	}
	return &b.addOns
}

// ofCore returns the batch of a core kind.
func (b *batchReads) ofCore(kind string) *batch[metav1.PartialObjectMetadata] {
	if b == nil {
		return nil
	}
	return b.core[kind]
}

// batch are the objects of one kind, read once.
type batch[T any] struct {
	limit int64

	mutex sync.Mutex
	read  bool
	err   error
	// byCluster is nil if the hub has more objects than the limit.
	byCluster map[string][]T
}

// get returns the objects of a cluster, or false if the caller must read them for this cluster alone: the hub has too many,
// or denies the list of all. It returns any other error of the list for each cluster.
func (b *batch[T]) get(cluster string, list func(limit int64) (items []T, more bool, err error), clusterOf func(*T) string) ([]T, bool, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.read {
		items, more, err := list(b.limit)
		if apierrors.IsForbidden(err) { // a user may have granted it in namespaces alone
			more, err = true, nil
		}
		b.read, b.err = true, err
		if err == nil && !more {
			b.byCluster = map[string][]T{}
			for i := range items {
				name := clusterOf(&items[i])
				b.byCluster[name] = append(b.byCluster[name], items[i])
			}
		}
	}
	return b.byCluster[cluster], b.byCluster != nil, b.err
}
