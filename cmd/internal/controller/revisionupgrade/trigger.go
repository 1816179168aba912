package revisionupgrade

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// The permissions to scan, to create upgrades, and to delete completed ones.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/status,verbs=patch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades,verbs=get;list;watch;create;delete
// The admission plugin OwnerReferencesPermissionEnforcement requires this of a client that sets an owner.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default

// SetupWithManager registers the reconciler. A change of an upgrade is an event of its trigger.
func (t *Triggers) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("revisionupgradetrigger").
		For(&v1alpha1.ControllerRevisionUpgradeTrigger{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ControllerRevisionUpgrade{}, enqueueTrigger()).
		Complete(t)
}

// enqueueTrigger enqueues the trigger of an upgrade [status.Interval] after a change: changes until then share one pass, and one
// write.
func enqueueTrigger() handler.EventHandler {
	enqueue := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if owner := triggerOf(o); owner.Name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: owner.Name}}, status.Interval)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(e.Object, q)
		},
	}
}

// Reconcile advances a trigger by one pass, and writes its status.
func (t *Triggers) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	if err := t.Reader.Get(ctx, req.NamespacedName, trigger); err != nil || trigger.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p := t.newPass(trigger)
	summary, wait, err := p.advance(ctx)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops; the next one begins with a scan
	}
	if err != nil {
		summary = errorSummary(err)
	}
	if _, found := status.FromError(err); found {
		err, wait = nil, retryRarely
	}
	if failed := p.write(ctx, summary); failed != nil {
		return reconcile.Result{}, errors.Join(err, failed)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}
