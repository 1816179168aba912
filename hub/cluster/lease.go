package cluster

import (
	"context"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub"
)

// Leases watches the leases of clusters from the first pass of an action on. What it saw is
// lost with the agent: the next one waits for two renewals again. The zero value is ready.
type Leases struct {
	mutex   sync.Mutex
	watches map[string]*hub.LeaseWatch
}

// Fresh reports whether the cluster has renewed its lease on this hub twice since the first
// call for it.
func (l *Leases) Fresh(ctx context.Context, c client.Reader, cluster string) (bool, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: cluster, Name: LeaseName}, lease)
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	w := l.watches[cluster]
	if w == nil {
		if l.watches == nil {
			l.watches = map[string]*hub.LeaseWatch{}
		}
		w = &hub.LeaseWatch{}
		l.watches[cluster] = w
	}
	w.Observe(string(lease.UID), lease.Spec.RenewTime.Time)
	return w.Fresh(), nil
}
