package crossplane

import (
	"context"
	"fmt"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// connector creates a reconciliation for each pass. Reconciliations share the claims, the meter and the record of
// announced drift.
type connector[M resource.Managed, K, X any] struct {
	resource Resource[M, K, X]
	journal  journal
	recorder event.Recorder
	claims   *claims
	drift    *announcer
	meter    *meter
}

// dropData drops the data of an object that is deleted.
func (c *connector[M, K, X]) dropData(o metav1.Object) {
	if c.resource.Removed != nil {
		c.resource.Removed(o)
	}
	c.drift.reset(o)
	c.meter.drift(o, false)
}

func (c *connector[M, K, X]) Connect(ctx context.Context, mg M) (managed.TypedExternalClient[M], error) {
	e, err := c.resource.Connect(ctx, copyOf(mg))
	if err != nil {
		return nil, external(err)
	}
	if missing := e.missing(); missing != "" {
		return nil, fmt.Errorf("configure %s: External.%s is missing", c.resource.Kind.Kind, missing)
	}
	if e.Find == nil && c.resource.KeyFromSpec == nil && c.resource.looksUp() {
		return nil, fmt.Errorf("configure %s: External.Find is missing, to look up objects whose name is missing or a hint", c.resource.Kind.Kind)
	}
	return &reconciliation[M, K, X]{
		Resource: c.resource, journal: c.journal, recorder: c.recorder, claims: c.claims, drift: c.drift, meter: c.meter,
		external: metered(e, c.meter),
	}, nil
}

// DefaultInitializers returns crossplane-runtime's initializers without the one that writes the name of the managed
// resource as its external name: that name identifies nothing in the external system, and hides whether the user has
// set one. crossplane-runtime has no others, so the list is empty.
func DefaultInitializers(client.Client) []managed.Initializer { return nil }

// Options returns the options with which a reconciler of crossplane-runtime follows the contract. They enable
// management policies. The caller may add options after them, which must not replace the connector, the initializers,
// the finalizer or the updater of critical annotations. A caller's hook for the poll interval replaces the one that
// polls pending operations more often. The manager of the reconciler is that of [ReportsInvalidStatus].
func (r Resource[M, K, X]) Options(m manager.Manager, recorder event.Recorder) ([]managed.ReconcilerOption, error) {
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", r.Kind.Kind, err)
	}
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	connect := &connector[M, K, X]{
		resource: r.withDefaults(), journal: j, recorder: recorder,
		claims: newClaims(m.GetClient(), r.Kind, recorder), drift: newAnnouncer(recorder, reasonDiffers),
		meter: newMeter(r.Kind.GroupKind().String(), r.legacyForms()),
	}
	return []managed.ReconcilerOption{
		managed.WithTypedExternalConnector[M](connect),
		managed.WithInitializers(append(DefaultInitializers(m.GetClient()), r.Initializers...)...),
		managed.WithFinalizer(finalizer{journal: j, name: managed.FinalizerName, removed: connect.dropData}),
		// Create records its outcome itself, because it knows the name from before.
		managed.WithCriticalAnnotationUpdater(managed.CriticalAnnotationUpdateFn(func(context.Context, client.Object) error { return nil })),
		// The runtime refuses to reconcile after an interrupted creation, before it
		// connects. Observe recovers, or refuses with a reason.
		managed.WithDeterministicExternalName(true),
		managed.WithManagementPolicies(),
		managed.WithRecorder(recorder),
		managed.WithPollIntervalHook(r.withDefaults().pollInterval),
	}, nil
}

// Setup adds the controller of the kind to a manager. Further options come last.
func (r Resource[M, K, X]) Setup(m manager.Manager, o xpcontroller.Options, further ...managed.ReconcilerOption) error {
	name := managed.ControllerName(r.Kind.GroupKind().String())
	recorder := event.NewAPIRecorder(m.GetEventRecorderFor(name))
	options, err := r.Options(m, recorder)
	if err != nil {
		return err
	}
	if o.Logger != nil {
		options = append(options, managed.WithLogger(o.Logger.WithValues("controller", name)))
	}
	if o.PollInterval > 0 {
		options = append(options, managed.WithPollInterval(o.PollInterval))
	}
	if o.GlobalRateLimiter == nil {
		o.GlobalRateLimiter = ratelimiter.NewGlobal(defaultReconcilesPerSecond)
	}
	reconciler := managed.NewReconciler(ReportsInvalidStatus(m, recorder), resource.ManagedKind(r.Kind), append(options, further...)...)
	object, err := m.GetScheme().New(r.Kind)
	if err != nil {
		return fmt.Errorf("configure %s: %w", r.Kind.Kind, err)
	}
	kind, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("configure %s: %T is not an object", r.Kind.Kind, object)
	}
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		WithEventFilter(resource.DesiredStateChanged()).
		For(kind).
		Complete(ratelimiter.NewReconciler(name, reconciler, o.GlobalRateLimiter))
}

// pollInterval returns a shorter interval for a pending operation than for an existing resource.
func (r Resource[M, K, X]) pollInterval(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetAnnotations()[AnnotationOperation] != "" {
		return min(interval, r.OperationPoll)
	}
	return interval
}
