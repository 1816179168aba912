package preflight

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// Request is the migration to check.
type Request struct {
	// From and To are the names of the hubs' ManagedClusters on the global hub.
	From, To string
	// Clusters are the clusters to move; if empty, Placement names a Placement on the source hub.
	Clusters  []string
	Placement string
	// OnEvictedWorks and OnUserObjects are the choices of the user for what the move would destroy.
	OnEvictedWorks api.EvictedWorksPolicy
	OnUserObjects  api.UserObjectsPolicy
}

// View is a hub that the preflight may read.
type View struct {
	// Client must not read from a cache.
	Client client.Client
	// AgentNamespace is the namespace of Godwit's agent.
	AgentNamespace string
	// Clock of the API server.
	Clock clock.PassiveClock

	confirmations cluster.Confirmations
}

// hub returns the hub for the checks of packages source and target.
func (v *View) hub() cluster.Hub {
	return cluster.Hub{Client: v.Client, Confirmations: &v.confirmations}
}

// Hubs are the API servers that the preflight reads.
type Hubs struct {
	// Global is the API server with the migrations and with a ManagedCluster for each hub.
	Global client.Reader
	// ManagerNamespace is the namespace of the ConfigMaps with the enrolled hubs and with the heartbeats.
	ManagerNamespace string
	// Source and Target are the hubs; nil if the user has no access.
	Source, Target *View
	// Direct is how clusters reach the target hub, if one process carries the migration out without a global hub and without installed agents. Then
	// Global has the migrations alone.
	Direct *clusterv1.ClientConfig
	// Poll is the pause between two reads of a Lease or of the heartbeats, and before a check is repeated; 1 s unless set.
	Poll time.Duration
	// Clock is the clock of this machine. The clocks of the hubs and of the manager are compared with it.
	Clock clock.PassiveClock
}

func (h Hubs) poll() time.Duration {
	if h.Poll > 0 {
		return h.Poll
	}
	return time.Second
}

// repeatTime is how long a check is repeated, for an API server that has just started. It is long enough to confirm a
// missing permission.
const repeatTime = 15 * time.Second

// repeat repeats a check of a hub while a retry may succeed. It returns a [cluster.Error] if a retry does not fix the
// failure.
func (h Hubs) repeat(ctx context.Context, on cluster.Hub, check func(context.Context) (cluster.Result, error)) (cluster.Result, error) {
	for deadline := h.Clock.Now().Add(repeatTime); ; {
		r, err := check(ctx)
		switch {
		case err != nil && on.Final(ctx, err):
			return r, cluster.Explain(err)
		case err == nil && len(r.Waiting) == 0, h.Clock.Now().After(deadline):
			return r, err
		}
		if err := walk.Wait(ctx, h.poll()); err != nil {
			return r, err
		}
	}
}
