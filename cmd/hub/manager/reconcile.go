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

// Reconcile executes the due effects of a migration. A deleted one ends, also if its state can't be read or written.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := r.advance(ctx, req)
	if err == nil {
		return result, nil
	}
	released, wait, failed := r.releaseStuck(ctx, req.NamespacedName, err)
	if released || failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: wait}, r.reportUnreadableState(ctx, req.NamespacedName, err)
}

// advance executes the due effects of a migration.
func (r *Reconciler) advance(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
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
		r.loseOrFind,
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

// loseOrFind ends the migration without the target hub, or with it again, as the process has it.
func (r *Reconciler) loseOrFind(m migration) (hub.Event, error) {
	switch {
	case r.Direct != nil && r.Direct.TargetLost && m.state.NeedsLose():
		return hub.Lose{At: r.Clock.Now()}, nil
	case r.Direct != nil && !r.Direct.TargetLost && m.state.NeedsFind():
		return hub.Find{At: r.Clock.Now()}, nil
	}
	return nil, nil
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
			r.warn(o, api.ReasonFailed.Name, "a rollback was requested in phase "+string(o.Status.Phase)+", in which the source hub deletes: move the clusters back by another migration")
		}
		delete(o.Annotations, api.RequestAnnotation)
		return true
	})
}

// releaseStuck removes the finalizer of a deleted migration whose state can't be read or written. If nothing brings it back, such as in a
// namespace that is being deleted, it does so at once, and otherwise after the time in which a deletion ends, of which this process has seen all. It
// returns how long to wait until then.
func (r *Reconciler) releaseStuck(ctx context.Context, key types.NamespacedName, why error) (released bool, wait time.Duration, err error) {
	m := migration{object: &api.ManagedClusterMigration{}}
	if err := r.Reader.Get(ctx, key, m.object); err != nil || m.object.DeletionTimestamp.IsZero() {
		return apierrors.IsNotFound(err), 0, client.IgnoreNotFound(err)
	}
	newer := errors.As(why, new(*format.NewerError))
	switch {
	case errors.Is(why, errStateLost), apierrors.HasStatusCause(why, corev1.NamespaceTerminatingCause):
	case newer, r.final(ctx, why):
		ends := 2 * hub.New(m.object.Spec).Timeouts.ForPhase(api.PhaseRollbacking)
		if left := ends - min(r.Clock.Since(r.confirmations.Since(r.Clock.Now())), r.Clock.Since(m.object.DeletionTimestamp.Time)); left > 0 {
			return false, left, nil
		}
	default:
		return false, 0, nil
	}
	if m.object.Status.CompletionTime == nil { // the deletion of one that has ended deletes its state
		r.announceStuck(ctx, m, why)
	}
	if err := r.deleteExchange(ctx, m); err != nil {
		log.FromContext(ctx).Error(err, "Cannot delete the keys of a migration that is deleted")
	}
	return true, 0, r.edit(ctx, key, func(o *api.ManagedClusterMigration) bool { return controllerutil.RemoveFinalizer(o, api.Finalizer) })
}

// announceStuck records what a deleted migration leaves whose state can't be read or written. Without the state, the UID of the migration finds
// it on the hubs.
func (r *Reconciler) announceStuck(ctx context.Context, m migration, why error) {
	if r.restore(ctx, &m) == nil {
		r.announceLeft(ctx, m.object, "the migration is deleted, its state can't be written, and it has left something behind: ", m.state.Abandon())
		return
	}
	problem := "its state is lost"
	if !errors.Is(why, errStateLost) {
		problem = "its state can't be read: " + why.Error()
	}
	r.warn(m.object, api.ReasonLeftBehind.Name, fmt.Sprintf(
		"the migration is deleted, and %s: objects with annotation godwit.dev/migration-original or godwit.dev/migration of UID %s on hubs %s and %s are what it has left", problem, m.object.UID, m.object.Spec.From, m.object.Spec.To))
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
		r.warn(m, why.Reason, why.Message)
		return nil
	}
	return err
}
