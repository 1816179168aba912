package revisionupgrade

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// The permissions to find the references to revisions, to create and delete revisions, and to repoint references.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades,verbs=get;list;watch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;update;delete
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines,verbs=get;list;patch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines/status,verbs=patch
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinesnapshotcontents,verbs=get;list;patch
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinerestores,verbs=list
// +kubebuilder:rbac:groups=pool.kubevirt.io,resources=virtualmachinepools,verbs=get;list;patch
// In a namespace that is being deleted, a missing revision needs no restore from a backup.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// The admission plugin OwnerReferencesPermissionEnforcement requires this of a client that sets an owner.
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinesnapshots/finalizers,verbs=update
// Events about upgrades are in their namespaces.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. A request is a namespace. When the spec of a trigger changes, the request is for
// each namespace with upgrades of it.
func (u *Upgrades) SetupWithManager(mgr manager.Manager) error {
	ofNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{namespaceRequest(o.GetNamespace())}
	})
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(mgr).
		Named("revisionupgrade").
		Watches(&v1alpha1.ControllerRevisionUpgrade{}, ofNamespace, changed).
		Watches(&v1alpha1.ControllerRevisionUpgradeTrigger{}, handler.EnqueueRequestsFromMapFunc(u.namespacesOf), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentNamespaces}).
		Complete(u)
}

func namespaceRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (u *Upgrades) namespacesOf(ctx context.Context, trigger client.Object) []reconcile.Request {
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := u.Client.List(ctx, list, client.MatchingLabels{TriggerLabel: string(trigger.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the upgrades of a trigger", "trigger", trigger.GetName())
		return nil
	}
	found := map[string]bool{}
	for _, one := range list.Items {
		found[one.Namespace] = true
	}
	var all []reconcile.Request
	for name := range found {
		all = append(all, namespaceRequest(name))
	}
	return all
}

// Reconcile advances the upgrades of a namespace that are due as far as possible.
func (u *Upgrades) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	triggers, err := u.triggers(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	open, err := u.open(ctx, req.Name, triggers)
	if err != nil {
		return reconcile.Result{}, err
	}
	turn, wait := u.schedule.Take(req.Name, open, u.Clock.Now())
	if len(turn) == 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	upgrader, err := u.pool.limited(u.Upgrader, lowestLimit(turn, triggers))
	if err != nil {
		return reconcile.Result{}, err
	}
	began := u.Clock.Now()
	results, err := advance(ctx, upgrader, req.Name, turn)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops; the next one reads from the cluster how far the upgrades are
	}
	now := u.Clock.Now()
	pause := pauseAfter(now.Sub(began))
	for i, r := range results {
		if r.Phase == revision.Pending && r.ResourceVersion == "" {
			continue // the pass ended before this upgrade
		}
		next := nextVisit(r, now, pause)
		wait = shorterWait(wait, next)
		done, failed := u.record(ctx, turn[i], r)
		u.schedule.Set(turn[i], visit{next: now.Add(next), settings: settingsOf(turn[i]), written: done})
		err = errors.Join(err, failed)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// advance returns one result for each upgrade. If the namespace could not be read, all results have this error.
func advance(ctx context.Context, upgrader *revision.Upgrader, namespace string, turn []*v1alpha1.ControllerRevisionUpgrade) ([]revision.Result, error) {
	requests := make([]revision.Request, len(turn))
	for i, one := range turn {
		requests[i] = requestFor(one)
	}
	results, err := upgrader.Advance(ctx, namespace, requests)
	if err == nil || results != nil {
		return results, err
	}
	why := errorSummary(err)
	for _, r := range requests {
		results = append(results, revision.Result{Item: decision.Item{Name: r.Name, Reason: decision.Reasons.Find(why.Reason), Message: why.Message}, Phase: revision.Analyzing})
	}
	return results, err
}

func (u *Upgrades) triggers(ctx context.Context) (triggerSpecs, error) {
	list := &v1alpha1.ControllerRevisionUpgradeTriggerList{}
	if err := u.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list controllerrevisionupgradetriggers: %w", err)
	}
	all := triggerSpecs{}
	for _, t := range list.Items {
		if t.DeletionTimestamp == nil {
			all[t.UID] = t.Spec
		}
	}
	return all, nil
}

// open returns the upgrades of a namespace that have not ended, are not suspended, and are not of a newer release, with the
// settings of their triggers. It omits an upgrade whose trigger is deleted: it will be garbage-collected.
func (u *Upgrades) open(ctx context.Context, namespace string, triggers triggerSpecs) ([]*v1alpha1.ControllerRevisionUpgrade, error) {
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := u.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list controllerrevisionupgrades of %s: %w", namespace, err)
	}
	var open []*v1alpha1.ControllerRevisionUpgrade
	for i := range list.Items {
		one := &list.Items[i]
		owner := triggerOf(one).UID
		trigger, found := triggers[owner]
		switch {
		case one.DeletionTimestamp != nil, isFinished(one), trigger.Suspend, owner != "" && !found:
		case newerFormat(one) != nil:
			if err := u.refuse(ctx, one); err != nil {
				return nil, err
			}
		case one.Spec.Suspend:
			if err := u.suspend(ctx, one); err != nil {
				return nil, err
			}
		default:
			inheritSettings(one, trigger)
			open = append(open, one)
		}
	}
	return open, nil
}
