package crossplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
)

// Resource is a kind of managed resources whose external names follow the contract of this
// package. [Resource.Setup] adds its controller to a manager.
type Resource[M resource.Managed, K, X any] struct {
	// Kind is the managed resource.
	Kind schema.GroupVersionKind
	// Names are how the external names are written.
	Names externalname.Scheme[K]
	// Connect returns the external system that the managed resource asks for.
	Connect func(ctx context.Context, mg M) (External[M, K, X], error)

	// KeyFromSpec returns the key that the spec asks for, of kinds whose key the spec
	// determines. It is checked before a creation, and recorded before an update that
	// changes it.
	KeyFromSpec func(mg M) K
	// KeyFromStatus returns the key that status.atProvider determines, and false as long
	// as it does not, of hybrid kinds whose key consists of observed fields. It needs an
	// exception of [RuleNameFromCreate].
	KeyFromStatus func(mg M) (K, bool)
	// FindUnnamed is for compatibility with a release that has not written external
	// names: an object without one is looked up by Find, and gets the name of the one
	// match.
	FindUnnamed bool
	// ImportMustExist refuses to create a resource for a name that has never identified
	// one. By default that is drift, as for a resource that was deleted.
	ImportMustExist bool
	// RecoveryDelay is how long a request may still be carried out after the process that
	// sent it has died, and until Find shows it. Zero means 30 s.
	RecoveryDelay time.Duration
	// OperationPoll is how often a pending operation is looked at. Zero means 10 s.
	OperationPoll time.Duration
	// Initializers run before each observation, after [DefaultInitializers].
	Initializers []managed.Initializer
	// Exceptions are the rules of this package that the kind does not follow.
	Exceptions []Exception
}

const (
	// defaultRecoveryDelay is crossplane-runtime's grace period for APIs that are
	// eventually consistent.
	defaultRecoveryDelay = 30 * time.Second
	defaultOperationPoll = 10 * time.Second
	// defaultReconcilesPerSecond is what Crossplane's template of a provider sets.
	defaultReconcilesPerSecond = 10
)

// ExceptedRule is a rule that a kind may declare not to follow.
type ExceptedRule string

// RuleNameFromCreate says that the external name is set by Create from the response of the
// external system. Hybrid kinds set it from observed fields.
const RuleNameFromCreate ExceptedRule = "NameFromCreate"

// Exception is a rule that a kind does not follow, and why. It is printed in the reference of
// the kind.
type Exception struct {
	Rule   ExceptedRule `json:"rule"`
	Reason string       `json:"reason"`
}

// DefaultInitializers are those of crossplane-runtime without the one that writes the name of
// the managed resource as its external name: that name identifies nothing in the external
// system, and hides whether the user has set one. crossplane-runtime has no others.
func DefaultInitializers(client.Client) []managed.Initializer { return nil }

// Options returns the options that make a reconciler of crossplane-runtime follow the contract.
// They enable management policies. Options that the caller adds come after them, and must not
// replace the connector, the initializers, the finalizer or the updater of critical annotations.
// A hook for the poll interval replaces the one that looks at pending operations more often.
func (r Resource[M, K, X]) Options(m manager.Manager, recorder event.Recorder) ([]managed.ReconcilerOption, error) {
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", r.Kind.Kind, err)
	}
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	connect := &connector[M, K, X]{
		resource: r.withDefaults(), journal: j, recorder: recorder,
		claims: newClaims(m.GetClient(), recorder), drift: newAnnouncer(recorder, reasonDiffers),
		meter: newMeter(r.Kind.GroupKind().String(), r.legacyForms()),
	}
	return []managed.ReconcilerOption{
		managed.WithTypedExternalConnector[M](connect),
		managed.WithInitializers(append(DefaultInitializers(m.GetClient()), r.Initializers...)...),
		managed.WithFinalizer(finalizer{journal: j, name: managed.FinalizerName, removed: connect.forget}),
		// Create records its outcome itself, with what it knows about the name before.
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
	recorder := event.NewAPIRecorder(m.GetEventRecorderFor(name)) //nolint:staticcheck // crossplane-runtime v2.4.0 takes no other recorder
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
	reconciler := managed.NewReconciler(m, resource.ManagedKind(r.Kind), append(options, further...)...)
	object, err := m.GetScheme().New(r.Kind)
	if err != nil {
		return fmt.Errorf("configure %s: %w", r.Kind.Kind, err)
	}
	kind, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("configure %s: %T is no object", r.Kind.Kind, object)
	}
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		WithEventFilter(resource.DesiredStateChanged()).
		For(kind).
		Complete(ratelimiter.NewReconciler(name, reconciler, o.GlobalRateLimiter))
}

func (r Resource[M, K, X]) validate() error {
	switch {
	case r.Names.Codec == nil:
		return errors.New("Names.Codec is missing")
	case r.Connect == nil:
		return errors.New("Connect is missing")
	case r.KeyFromStatus != nil && !r.excepts(RuleNameFromCreate):
		return fmt.Errorf("KeyFromStatus needs an exception of rule %s with a reason", RuleNameFromCreate)
	}
	for _, e := range r.Exceptions {
		if strings.TrimSpace(e.Reason) == "" {
			return fmt.Errorf("exception of rule %s has no reason", e.Rule)
		}
	}
	return nil
}

func (r Resource[M, K, X]) excepts(rule ExceptedRule) bool {
	for _, e := range r.Exceptions {
		if e.Rule == rule {
			return true
		}
	}
	return false
}

// looksUp reports whether objects may have to be looked up by their spec.
func (r Resource[M, K, X]) looksUp() bool {
	for _, form := range r.Names.Legacy {
		if form.Content == externalname.ContentHint {
			return true
		}
	}
	return r.FindUnnamed
}

func (r Resource[M, K, X]) withDefaults() Resource[M, K, X] {
	if r.RecoveryDelay == 0 {
		r.RecoveryDelay = defaultRecoveryDelay
	}
	if r.OperationPoll == 0 {
		r.OperationPoll = defaultOperationPoll
	}
	return r
}

// pollInterval looks at a pending operation more often than at a resource that exists.
func (r Resource[M, K, X]) pollInterval(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetAnnotations()[AnnotationOperation] != "" {
		return min(interval, r.OperationPoll)
	}
	return interval
}

// connector makes a reconciliation for each pass, so that objects share nothing but the claims
// and what was announced.
type connector[M resource.Managed, K, X any] struct {
	resource Resource[M, K, X]
	journal  journal
	recorder event.Recorder
	claims   *claims
	drift    *announcer
	meter    *meter
}

// forget drops what is remembered of an object that is gone.
func (c *connector[M, K, X]) forget(o metav1.Object) {
	c.drift.forget(o)
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

// copyOf keeps what a function of the author does with an object away from the object.
func copyOf[M resource.Managed](mg M) M {
	return mg.DeepCopyObject().(M)
}
