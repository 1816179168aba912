package manager

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// executeDue executes the due effects, including those that become due by them. It reports whether an effect waits. A
// failed effect does not stop the others and is retried later.
func (r *Reconciler) executeDue(ctx context.Context, m migration) (after migration, waits bool, err error) {
	tried := map[string]bool{}
	for {
		e, ok := firstUntried(m.state, tried)
		if !ok || ctx.Err() != nil {
			return m, waits, ctx.Err()
		}
		tried[e.Key] = true
		done, err := r.executeAndApply(ctx, m, e)
		if err != nil {
			log.FromContext(ctx).Error(err, "An effect will be tried again", "effect", e.Key)
		}
		waits = waits || !done
		// Read again: messages may have arrived meanwhile.
		if m, err = r.load(ctx, client.ObjectKeyFromObject(m.object)); err != nil {
			return m, waits, err
		}
	}
}

// firstUntried returns the first due effect that was not tried.
func firstUntried(s hub.State, tried map[string]bool) (hub.Effect, bool) {
	for _, e := range hub.Due(s) {
		if !tried[e.Key] {
			return e, true
		}
	}
	return hub.Effect{}, false
}

// executeAndApply executes an effect and applies the resulting event. It returns false while the effect waits. Claims
// are serialized: each is stored before the next is decided.
func (r *Reconciler) executeAndApply(ctx context.Context, m migration, e hub.Effect) (done bool, err error) {
	if hasAction(e, hub.ClaimClusters) {
		r.claiming.Lock()
		defer r.claiming.Unlock()
	}
	event, err := r.execute(ctx, m, e)
	if err != nil || event == nil {
		return false, err
	}
	_, unsent := event.(hub.Unsent)
	_, err = r.apply(ctx, client.ObjectKeyFromObject(m.object), fixedEvent(event))
	return err == nil && !unsent, err
}

// execute executes an effect, and returns the resulting event.
func (r *Reconciler) execute(ctx context.Context, m migration, e hub.Effect) (hub.Event, error) {
	if e.Party != hub.Manager {
		return r.command(ctx, m, e)
	}
	switch e.Orders[0].Action {
	case hub.CheckHubs:
		waits, p, err := r.checkHubs(ctx, m)
		return r.result(ctx, e, waits, p, err)
	case hub.ClaimClusters:
		if p := checkCommandSize(m.state); p != nil {
			return r.result(ctx, e, "", p, nil)
		}
		other, err := r.overlapping(ctx, m)
		if err == nil && other != "" {
			return hub.Wait{At: r.Clock.Now(), For: other}, nil
		}
		return r.result(ctx, e, "", nil, err)
	case hub.IssueBootstrap:
		waits, p, err := r.issueBootstrap(ctx, m)
		return r.result(ctx, e, waits, p, err)
	case hub.RevokeBootstrap:
		return r.result(ctx, e, "", nil, r.revokeBootstrap(ctx, m))
	case hub.RemoveFinalizer:
		return nil, r.removeFinalizer(ctx, m)
	}
	return nil, fmt.Errorf("the manager knows no action %s", e.Orders[0].Action)
}

// command sends a command. Before a cluster has moved, a command that can't be built or that the broker refuses ends
// the migration with a reason. After that, the status shows the reason, and the manager retries until the phase ends. So it
// does for a hub that was replaced: its user may be about to say that it is the same hub.
func (r *Reconciler) command(ctx context.Context, m migration, e hub.Effect) (hub.Event, error) {
	err := r.send(ctx, m, e, nil)
	p := problemOf(err, err != nil && r.final(ctx, err))
	switch {
	case p != nil && hub.StageNumber(e.Stage) < hub.StageNumber(api.PhaseRegistering) && p.reason != api.ReasonHubReplaced.Name:
		return hub.Report{
			At: r.Clock.Now(), Party: e.Party, Stage: e.Stage, Attempt: e.Attempt, Finished: true, Reason: p.reason, Error: hub.Failure{Message: p.message},
		}, nil
	case p != nil:
		return hub.Unsent{At: r.Clock.Now(), Key: e.Key, Message: p.message}, nil //nolint:nilerr // the event has the error
	case err != nil:
		return nil, err
	}
	return hub.Sent{At: r.Clock.Now(), Key: e.Key}, nil
}

// result returns the report on an action of the manager. An action that waits is retried until the phase ends; then it
// fails, and the message says what it waited for.
func (r *Reconciler) result(ctx context.Context, e hub.Effect, waits string, p *problem, err error) (hub.Event, error) {
	now := r.Clock.Now()
	report := hub.Report{At: now, Party: hub.Manager, Stage: e.Stage, Attempt: e.Attempt, Finished: true}
	late := !now.Before(e.Until)
	switch {
	case err != nil && (late || r.final(ctx, err)):
		report.Error = failureOf(err)
	case err != nil:
		return nil, err
	case p != nil:
		report.Reason, report.Error = p.reason, hub.Failure{Message: p.message}
	case waits != "" && late:
		report.Reason, report.Error = api.ReasonTimeout.Name, hub.Failure{Message: "the time of phase " + string(e.Stage) + " is over: " + waits}
	case waits != "":
		log.FromContext(ctx).V(1).Info("An action of the manager waits", "action", e.Orders[0].Action, "for", waits)
		return nil, nil
	}
	return report, nil
}

// removeFinalizer removes the keys and the finalizer of a settled migration.
func (r *Reconciler) removeFinalizer(ctx context.Context, m migration) error {
	if err := r.deleteExchange(ctx, m); err != nil {
		return err
	}
	if !m.object.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(m.object, api.Finalizer) {
		r.announceLeft(ctx, m.object, "the migration is deleted, and has left something behind: ", m.state)
	}
	if m.object.Status.CompletionTime != nil {
		if err := r.ownState(ctx, m); err != nil {
			return err
		}
	}
	return r.edit(ctx, client.ObjectKeyFromObject(m.object), func(o *api.ManagedClusterMigration) bool {
		return o.Status.CompletionTime != nil && controllerutil.RemoveFinalizer(o, api.Finalizer)
	})
}

// edit patches the metadata of a migration, if change returns true.
func (r *Reconciler) edit(ctx context.Context, key types.NamespacedName, change func(*api.ManagedClusterMigration) bool) error {
	defer r.locks.Acquire(key)()
	for {
		m := &api.ManagedClusterMigration{}
		if err := r.Reader.Get(ctx, key, m); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := m.DeepCopy()
		if !change(m) {
			return nil
		}
		err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return client.IgnoreNotFound(err)
		}
	}
}
