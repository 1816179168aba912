package manager

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Transport carries envelopes; [kafka.Transport] is one.
type Transport interface {
	Send(ctx context.Context, topic, key string, e message.Envelope) error
	Receive(ctx context.Context, group string, topics []string, handle func(ctx context.Context, topic string, e message.Envelope) error) error
	EnsureTopics(ctx context.Context, topics ...string) error
	CaughtUp(ctx context.Context, group, topic string) error
}

// Reconciler is the manager's side of all migrations.
type Reconciler struct {
	// Client writes.
	Client client.Client
	// Reader asks the API server, since a decision on a cached state would be made twice.
	Reader    client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Transport Transport
	Metrics   *Metrics
	// Namespace of the manager.
	Namespace string
	// Identity signs the commands.
	Identity message.Identity

	receipts      receipts
	locks         locks
	claiming      sync.Mutex
	confirmations cluster.Confirmations
	// changed is what messages have changed, for the controller to reconcile. Nil in tests that
	// call Reconcile themselves.
	changed chan event.TypedGenericEvent[*api.ManagedClusterMigration]
}

// final reports whether repetition does not fix an error of the global hub.
func (r *Reconciler) final(ctx context.Context, err error) bool {
	return r.confirmations.Final(ctx, r.Client, err)
}
