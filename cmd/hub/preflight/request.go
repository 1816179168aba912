package preflight

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// Request says what would move.
type Request struct {
	// From and To are hubs: the names of their ManagedClusters on the global hub.
	From, To string
	// Clusters to move, or the name of a Placement on the source hub.
	Clusters  []string
	Placement string
	// AcceptEvictedWorks makes ManifestWorks whose delete option is not Orphan a risk, and no reason
	// to block.
	AcceptEvictedWorks bool
}

// View is the API server of a hub, which the preflight may read.
type View struct {
	// Client must not read from a cache.
	Client client.Client
	// AgentNamespace is the namespace of Godwit's agent.
	AgentNamespace string
	// Clock of the API server.
	Clock clock.PassiveClock

	confirmations cluster.Confirmations
}

// hub is the hub for the checks of packages source and target.
func (v *View) hub() cluster.Hub {
	return cluster.Hub{Client: v.Client, Confirmations: &v.confirmations}
}

// Hubs are what the preflight reads.
type Hubs struct {
	// Global is the API server with the migrations and with a ManagedCluster for each hub.
	Global client.Reader
	// ManagerNamespace has the ConfigMaps with the enrolled hubs and with the heartbeats.
	ManagerNamespace string
	// Source and Target are the hubs; nil if the user has no access.
	Source, Target *View
	// Poll is the pause between two reads of a Lease or of the heartbeats, and before a check is repeated; 1 s unless set.
	Poll time.Duration
	// Clock of this machine, with which those of the hubs and of the manager are compared.
	Clock clock.PassiveClock
}

func (h Hubs) poll() time.Duration {
	if h.Poll > 0 {
		return h.Poll
	}
	return time.Second
}

// repeatTime is for an API server that has just started. A missing permission is confirmed within it.
const repeatTime = 15 * time.Second

// repeat repeats a check of a hub while it fails in a way that may end. An error that repetition does not fix is a
// [cluster.Error].
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
