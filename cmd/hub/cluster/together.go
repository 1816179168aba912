package cluster

import (
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const (
	// few clusters are read one by one.
	few = 8
	// listFactor is how many objects a list may have for each one that the pass needs. A hub
	// that has more is read cluster by cluster: most of a list would be of clusters that stay.
	listFactor = 8
)

// together is what a pass reads of all of its clusters.
type together struct {
	clusters batch[clusterv1.ManagedCluster]
	leases   batch[coordinationv1.Lease]
	requests batch[certificatesv1.CertificateSigningRequest]
}

// newTogether is for a pass over so many clusters. Few are read one by one.
func newTogether(clusters int) *together {
	if clusters <= few {
		return nil
	}
	limit := int64(listFactor * clusters)
	return &together{
		clusters: batch[clusterv1.ManagedCluster]{limit: limit},
		leases:   batch[coordinationv1.Lease]{limit: limit},
		requests: batch[certificatesv1.CertificateSigningRequest]{limit: limit},
	}
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

// of returns the objects of a cluster, or false if they are to be read for it alone. An error
// of the list is returned for each cluster.
func (b *batch[T]) of(cluster string, list func(limit int64) (items []T, more bool, err error), clusterOf func(*T) string) ([]T, bool, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.read {
		items, more, err := list(b.limit)
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
