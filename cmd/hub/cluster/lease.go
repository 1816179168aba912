package cluster

import (
	"context"
	"maps"
	"sync"

	"github.com/godwit-dev/godwit/cmd/hub"
)

// Leases observes the leases of clusters since the first pass of an action. The observations are lost with the agent:
// the next process waits for two renewals again. The zero value is ready.
type Leases struct {
	mutex   sync.Mutex
	watches map[string]*hub.LeaseWatch
}

// Keep ends the observation of the other clusters.
func (l *Leases) Keep(kept func(cluster string) bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	maps.DeleteFunc(l.watches, func(name string, _ *hub.LeaseWatch) bool { return !kept(name) })
}

// Fresh reports whether the cluster has renewed its lease on this hub twice since the first
// call for it.
func (l *Leases) Fresh(ctx context.Context, h Hub, cluster string) (bool, error) {
	lease, err := h.lease(ctx, cluster)
	if err != nil || lease == nil || lease.Spec.RenewTime == nil {
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
