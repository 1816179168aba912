package manager

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// observeInterval is how often a process looks for requests of users, who use another process.
const observeInterval = time.Second

// RunDirect carries out one migration until it has settled or the context ends. Direct must be set.
func (r *Reconciler) RunDirect(ctx context.Context, key types.NamespacedName) error {
	m, err := r.apply(ctx, key, fixedEvent(hub.Continue{At: r.Clock.Now(), Paused: r.Direct.Paused}))
	if err != nil {
		return err
	}
	r.changed = make(chan event.TypedGenericEvent[*api.ManagedClusterMigration], changedMigrations)
	ctx, stop := context.WithCancel(ctx)
	var receivers sync.WaitGroup
	defer receivers.Wait()
	defer stop()
	for _, name := range []string{m.from(), m.to()} {
		receivers.Go(func() { r.receiveFrom(ctx, name) })
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.changed:
		case <-pause.C:
		}
		if settled, err := r.reconcileDirect(ctx, key); settled || err != nil {
			return err
		}
		pause.Reset(observeInterval)
	}
}

// reconcileDirect reports whether the migration has settled. It logs an error that another attempt may fix.
func (r *Reconciler) reconcileDirect(ctx context.Context, key types.NamespacedName) (settled bool, err error) {
	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil && ctx.Err() == nil {
		if r.final(ctx, err) {
			return false, err
		}
		log.FromContext(ctx).Error(err, "Cannot carry out the migration; the process tries again")
		return false, nil
	}
	m := &api.ManagedClusterMigration{}
	if err := r.Reader.Get(ctx, key, m); err != nil {
		return false, err
	}
	return m.Status.CompletionTime != nil && m.Annotations[api.RequestAnnotation] == "", nil
}
