package direct

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Namespace is the namespace of the state, on both hubs.
const Namespace = "godwit-migrations"

// Hub is a hub to which the process has access.
type Hub struct {
	// Client must not read from a cache.
	Client client.Client
	// Config connects to the hub.
	Config *rest.Config
}

// Options of a run.
type Options struct {
	Source Hub
	// Target is empty if the target hub never answers again. The migration then ends without it: what the target has not proven to have returns,
	// and the status names what is left.
	Target Hub
	// Process names this process in the Lease.
	Process string
	// Recorder gets the events of the migration; a process has no object to record them for.
	Recorder events.EventRecorder
	Clock    clock.Clock
	// Agent has the settings of both agents that do not depend on the hub.
	Agent agent.Options
}

// Prepare creates the namespace of the state on a hub.
func Prepare(ctx context.Context, hub client.Client, namespace string) error {
	err := hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return nil
}

// Run carries out a migration of the store until it has settled or the context ends. It returns a [HeldError] if another
// process carries it out.
func Run(ctx context.Context, m *api.ManagedClusterMigration, o Options) error {
	clients, err := kubernetes.NewForConfig(o.Source.Config)
	if err != nil {
		return err
	}
	before, err := HolderOf(ctx, o.Source.Client, m, o.Clock.Now())
	if err != nil {
		return err
	}
	return hold(ctx, clients, leaseKey(m), o.Process, func(ctx context.Context) error {
		var paused time.Duration
		if !before.Renewed.IsZero() {
			paused = max(o.Clock.Since(before.Renewed), 0)
		}
		return o.carryOut(ctx, m, paused)
	})
}

// carryOut runs the manager and both agents in this process.
func (o Options) carryOut(ctx context.Context, m *api.ManagedClusterMigration, paused time.Duration) error {
	lost := o.Target.Client == nil
	address, err := AddressIn(m)
	if err != nil && !lost {
		return err
	}
	// One process has one identity: it signs what all three parties send. It is stored, since a resumed agent checks
	// what it has stored.
	own, err := identity.Ensure(ctx, o.Source.Client, o.Source.Client, identity.Owner{Namespace: m.Namespace, Name: message.ManagerName})
	if err != nil {
		return err
	}
	store, through := NewStore(o.Source.Client, m.Namespace), newTransport()
	r := &manager.Reconciler{
		Client: store, Reader: store, Recorder: o.Recorder, Clock: o.Clock, Transport: through, Metrics: manager.NewMetrics(store),
		Namespace: m.Namespace, Identity: own,
		Direct: &manager.Direct{Target: address, TargetLost: lost, Paused: paused},
	}
	hubs := map[api.HubName]Hub{m.Spec.From: o.Source, m.Spec.To: o.Target}
	if lost {
		delete(hubs, m.Spec.To)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var agents sync.WaitGroup
	failed := make(chan error, 2)
	for name, hub := range hubs {
		one := o.Agent
		one.Client, one.Transport, one.Hub, one.Namespace = hub.Client, through, string(name), m.Namespace
		one.Manager, one.Identity, one.Clock, one.Only, one.Paused = own.Key(), own, o.Clock, string(m.UID), paused
		if name == m.Spec.To {
			one.Identities = cluster.Hub{Client: o.Source.Client}.IdentitiesOf
		}
		agents.Go(func() {
			if err := agent.New(one).Run(working); err != nil {
				failed <- fmt.Errorf("hub %s: %w", name, err)
				stop()
			}
		})
	}
	err = r.RunDirect(working, client.ObjectKeyFromObject(m))
	stop()
	agents.Wait()
	select {
	case why := <-failed:
		return why
	default:
	}
	if err != nil {
		return err
	}
	for _, hub := range hubs {
		err = errors.Join(err, agent.DeleteStored(ctx, hub.Client, m.Namespace, string(m.UID)))
	}
	return err
}
