package preflight

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
}

// Hubs are what the preflight reads.
type Hubs struct {
	// Global is the API server with the migrations and with a ManagedCluster for each hub.
	Global client.Reader
	// ManagerNamespace has the ConfigMaps with the enrolled hubs and with the heartbeats.
	ManagerNamespace string
	// Source and Target are the hubs; nil if the user has no access.
	Source, Target *View
	// Poll is the pause between two reads of a Lease, or of the heartbeats; 1 s unless set.
	Poll time.Duration
	// Clock of this machine, with which those of the hubs and of the manager are compared.
	Clock clock.PassiveClock
}
