package agent

import (
	"cmp"
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// Transport sends and receives envelopes, as package kafka does. Receive passes messages to handle one after another,
// and passes a message again that was not handled. It returns when the context ends or when it fails; the caller then
// calls it again.
type Transport interface {
	Send(ctx context.Context, topic, key string, e message.Envelope) error
	Receive(ctx context.Context, group string, topics []string, handle func(ctx context.Context, topic string, e message.Envelope) error) error
}

// Options of an agent. Client, Transport, Hub, Namespace, Manager and Identity are required.
type Options struct {
	// Client reads and writes the API server of the hub. It must not read from a cache: an agent must see its own
	// writes.
	Client    client.Client
	Transport Transport
	// Hub is the name of the hub's ManagedCluster on the global hub.
	Hub string
	// Namespace of the agent has its Secrets, the accounts that it makes for migrations, and the Placements by which users select clusters.
	Namespace string
	// BootstrapNamespace is where the import controller reads bootstrap secrets;
	// multicluster-engine unless set.
	BootstrapNamespace string
	// Manager is the key that verifies commands. The installation sets it.
	Manager message.IdentityKey
	// Identity signs what the agent sends. Its public key is enrolled with the manager.
	Identity message.Identity
	// Rules select the objects that are collected and that may be applied; those of package resource unless set.
	Rules []resource.Rule
	// Metrics are counted even if they are not registered.
	Metrics *Metrics
	Clock   clock.Clock
	// Only is the UID of the one migration in which the agent takes part; all unless set.
	Only string
	// Identities returns the claim id.k8s.io of clusters at the source hub. Nil means that the process has no access to that hub.
	Identities func(ctx context.Context, clusters []string) (map[string]string, error)
	// Paused is how long no agent has run. Deadlines of stored commands do not count this time.
	Paused time.Duration

	// Heartbeat is the interval between two heartbeats; 15 s unless set. The manager considers an agent absent after 60
	// s without one.
	Heartbeat time.Duration
	// Poll is the longest pause between two passes; 2 s unless set.
	Poll time.Duration
	// Quiet is how long the agent waits without an arrival before it reports missing objects; 15 s unless set.
	Quiet time.Duration
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.Poll = cmp.Or(o.Poll, 2*time.Second)
	o.Quiet = cmp.Or(o.Quiet, 15*time.Second)
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}
