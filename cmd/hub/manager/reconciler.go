package manager

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/lock"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Transport sends and receives envelopes; [kafka.Transport] implements it.
type Transport interface {
	Send(ctx context.Context, topic, key string, e message.Envelope) error
	Receive(ctx context.Context, group string, topics []string, handle func(ctx context.Context, topic string, e message.Envelope) error) error
	EnsureTopics(ctx context.Context, topics ...string) error
	AwaitCaughtUp(ctx context.Context, group, topic string) error
}

// changedMigrations is the number of changed migrations that are buffered while all workers are busy.
const changedMigrations = 64

// Direct is what a process knows that carries out one migration by itself, without a global hub and without brokers. Both agents run in
// it, and have its identity.
type Direct struct {
	// Target is how managed clusters reach the target hub.
	Target clusterv1.ClientConfig
	// TargetLost means that the target hub never answers again: the process ends the migration without it.
	TargetLost bool
	// Paused is how long no process has carried out the migration.
	Paused time.Duration
}

// Reconciler is the manager's side of all migrations.
type Reconciler struct {
	// Client writes.
	Client client.Client
	// Reader reads from the API server: with a cache, a decision could be made twice.
	Reader    client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Transport Transport
	Metrics   *Metrics
	// Namespace of the manager.
	Namespace string
	// Allowed are the namespaces whose migrations the manager begins; empty means all.
	Allowed []string
	// Identity signs the commands.
	Identity message.Identity
	// Direct is nil for a manager on a global hub.
	Direct *Direct

	receipts receipts
	// locks serialize the changes of a migration: messages arrive while it is reconciled.
	locks         lock.Keys
	claiming      sync.Mutex
	confirmations cluster.Confirmations
	// changed has the migrations that messages have changed, for the controller to reconcile. It is nil in tests that
	// call Reconcile themselves.
	changed chan event.TypedGenericEvent[*api.ManagedClusterMigration]
}

// final reports whether a retry cannot fix an error of the global hub.
func (r *Reconciler) final(ctx context.Context, err error) bool {
	return r.confirmations.Final(ctx, r.Client, err)
}
