package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/format"
)

// waitInterval is how often the manager reads again what a migration waits for: a token, a heartbeat, the end of
// another migration.
const waitInterval = time.Second

// Reconcile executes the due effects of a migration.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, r.reportUnreadableState(ctx, req.NamespacedName, err)
	}
	for {
		var waits bool
		if m, waits, err = r.executeDue(ctx, m); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		deadline, ok := hub.Deadline(m.state)
		if !ok {
			return r.removeIfSettled(ctx, m)
		}
		if left := deadline.Sub(r.Clock.Now()); left > 0 {
			if waits {
				left = min(left, waitInterval)
			}
			return reconcile.Result{RequeueAfter: left}, nil
		}
		// A deleted migration ends also while the brokers are away.
		overdue := m.state.Deleting && r.Clock.Since(deadline) > m.state.Timeouts.ForPhase(m.state.Stage)
		if read, err := r.hasRead(ctx, m); err != nil || !read && !overdue {
			return reconcile.Result{RequeueAfter: waitInterval}, err
		}
		if m, err = r.apply(ctx, req.NamespacedName, fixedEvent(hub.Tick{At: r.Clock.Now()})); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
}

// removeIfSettled removes the keys and the finalizer of a migration that has settled: the finalizer would block a
// deletion after the manager is uninstalled. A migration that waits for another one is read again later.
func (r *Reconciler) removeIfSettled(ctx context.Context, m migration) (reconcile.Result, error) {
	if m.state.Phase == api.PhasePending {
		return reconcile.Result{RequeueAfter: waitInterval}, nil
	}
	return reconcile.Result{}, r.removeFinalizer(ctx, m)
}

// observe applies the changes of users.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (migration, error) {
	if err := r.edit(ctx, key, func(o *api.ManagedClusterMigration) bool {
		unfinished := o.Status.CompletionTime == nil || o.Annotations[api.RequestAnnotation] == api.RequestRollback
		return o.DeletionTimestamp.IsZero() && unfinished && hasKnownFormat(o) && controllerutil.AddFinalizer(o, api.Finalizer)
	}); err != nil {
		return migration{}, err
	}
	rollback := false
	for _, learn := range []func(migration) (hub.Event, error){
		fixedEvent(hub.Resume{At: r.Clock.Now()}),
		func(m migration) (hub.Event, error) {
			if m.object.DeletionTimestamp.IsZero() || m.state.Deleting {
				return nil, nil
			}
			return hub.Delete{At: r.Clock.Now()}, nil
		},
		func(m migration) (hub.Event, error) {
			if r.Direct == nil || !r.Direct.TargetLost || !m.state.NeedsLose() {
				return nil, nil
			}
			return hub.Lose{At: r.Clock.Now()}, nil
		},
		func(m migration) (hub.Event, error) {
			rollback = m.object.Annotations[api.RequestAnnotation] == api.RequestRollback
			if !rollback {
				return nil, nil
			}
			return hub.Rollback{At: r.Clock.Now()}, nil
		},
		r.forget,
		func(m migration) (hub.Event, error) { return r.start(ctx, m) },
	} {
		if _, err := r.apply(ctx, key, learn); err != nil {
			return migration{}, err
		}
	}
	if rollback {
		if err := r.removeRequest(ctx, key); err != nil {
			return migration{}, err
		}
	}
	return r.load(ctx, key)
}

// forget ends the migration without the clusters that a user has named, from phase Registering on.
func (r *Reconciler) forget(m migration) (hub.Event, error) {
	names := m.state.Forgettable(m.object.Spec.ForgottenManagedClusters)
	if len(names) == 0 {
		return nil, nil
	}
	return hub.Forget{At: r.Clock.Now(), Clusters: names}, nil
}

// hasKnownFormat reports whether this release can read the progress in the status.
func hasKnownFormat(o *api.ManagedClusterMigration) bool {
	p := o.Status.Progress
	return format.CheckObject("", o) == nil && (p == nil || format.CheckNumber("", int64(p.Format)) == nil)
}

// start begins a migration, unless another migration has one of its clusters.
func (r *Reconciler) start(ctx context.Context, m migration) (hub.Event, error) {
	if m.state.Phase != api.PhasePending {
		return nil, nil
	}
	now := r.Clock.Now()
	other, err := r.overlapping(ctx, m)
	if err != nil {
		return nil, err
	}
	switch other {
	case "":
		return hub.Start{At: now}, nil
	case m.state.WaitingFor:
		return nil, nil
	}
	return hub.Wait{At: now, For: other}, nil
}

// removeRequest removes the request annotation after the request was stored.
func (r *Reconciler) removeRequest(ctx context.Context, key types.NamespacedName) error {
	return r.edit(ctx, key, func(o *api.ManagedClusterMigration) bool {
		ends := r.Direct != nil && r.Direct.TargetLost
		if !ends && (o.Status.Phase == api.PhaseCleaning || o.Status.Phase == api.PhaseCompleted) {
			r.event(o, corev1.EventTypeWarning, api.ReasonFailed.Name, "a rollback was requested in phase "+string(o.Status.Phase)+", in which the source hub deletes: move the clusters back by another migration")
		}
		delete(o.Annotations, api.RequestAnnotation)
		return true
	})
}

// releaseLost removes the finalizer of a deleted migration whose state is lost: nothing can bring it back, and a namespace
// that is being deleted has lost it first. It returns false if the migration is not deleted.
func (r *Reconciler) releaseLost(ctx context.Context, key types.NamespacedName) (deleted bool, err error) {
	m := &api.ManagedClusterMigration{}
	if err := r.Reader.Get(ctx, key, m); err != nil || m.DeletionTimestamp.IsZero() {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if m.Status.CompletionTime == nil { // the deletion of one that has ended deletes its state
		r.event(m, corev1.EventTypeWarning, api.ReasonLeftBehind.Name, fmt.Sprintf(
			"the migration is deleted, and its state is lost: objects with annotation godwit.dev/migration-original or godwit.dev/migration of UID %s on hubs %s and %s are what it has left", m.UID, m.Spec.From, m.Spec.To))
	}
	if err := r.deleteExchange(ctx, migration{object: m}); err != nil {
		return false, err
	}
	return true, r.edit(ctx, key, func(o *api.ManagedClusterMigration) bool { return controllerutil.RemoveFinalizer(o, api.Finalizer) })
}

// hasRead reports whether the manager has read all messages of both hubs from before its start. Deadlines do not count
// before that: a report in the topic may be in time.
func (r *Reconciler) hasRead(ctx context.Context, m migration) (bool, error) {
	if r.Direct != nil {
		return true, nil
	}
	hubs, err := r.enrolledKeys(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range []string{m.from(), m.to()} {
		if _, ok := hubs[name]; ok && !r.receipts.hasCaughtUp(name) && r.receipts.get(name).Refused == "" {
			log.FromContext(ctx).V(1).Info("The status topic is not read to its end", "hub", name)
			return false, nil
		}
	}
	return true, nil
}

// reportUnreadableState writes to the status why the manager can't resume. It returns nil if only another release can.
func (r *Reconciler) reportUnreadableState(ctx context.Context, key types.NamespacedName, err error) error {
	if errors.Is(err, errStateLost) {
		if deleted, failed := r.releaseLost(ctx, key); deleted || failed != nil {
			return failed
		}
	}
	why := status.Summary{State: status.StateStalled, Reason: api.ReasonStateLost.Name, Message: fmt.Sprint(err) + ". Restore the ConfigMaps from a backup"}
	newer := errors.As(err, new(*format.NewerError))
	switch {
	case newer:
		why.Reason, why.Message = api.ReasonNewerFormat.Name, err.Error()
	case !errors.Is(err, errStateLost):
		return client.IgnoreNotFound(err)
	}
	m := &api.ManagedClusterMigration{}
	if failed := r.Reader.Get(ctx, key, m); failed != nil {
		return client.IgnoreNotFound(failed)
	}
	before := m.DeepCopy()
	why.Apply(statusObject{m})
	if newer && equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if failed := r.Client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); failed != nil {
		return errors.Join(err, failed)
	}
	if newer {
		r.event(m, corev1.EventTypeWarning, why.Reason, why.Message)
		return nil
	}
	return err
}
