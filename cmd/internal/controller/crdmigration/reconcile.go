package crdmigration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

// concurrent is how many passes go on at once. They share one limiter, so that it is
// no matter of load: a pass whose webhook hangs lasts, and an operator has one webhook
// for many definitions.
const concurrent = 32

// A reconcile that failed, as all do while the API server is away, is tried again
// after these, doubling: who comes back is noticed within maxBackoff.
const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
)

// Backoff is what both of the manager's reconcilers are retried with.
func Backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxBackoff)
}

// What it needs to carry them out. The objects it migrates are of groups that
// only an installation knows; package operator adds their rules, and for its own
// kind, which it migrates like any other, the verb is here.
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades;controllerrevisionupgradetriggers,verbs=list;patch
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=patch
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list
// The API servers' identities, and events about objects without a namespace.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list,namespace=kube-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default

// Reconciler carries out CRDMigrations.
type Reconciler struct {
	Client   client.Client
	Reader   client.Reader // live
	Config   *rest.Config
	Recorder events.EventRecorder
	// Defaults hold where a CRDMigration says nothing.
	Defaults v1alpha1.CRDMigrationSpec
	// Limiter paces all migrations together.
	Limiter *walk.Limiter
	// Maker is this manager.
	Maker Maker
	// InScope tells whether a definition is still one that the manager chose; only
	// migrations that the manager made are asked about.
	InScope func(crd metav1.Object) bool
	Metrics *Metrics

	mu    sync.Mutex
	works map[string]*work
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	definitions := &metav1.PartialObjectMetadata{}
	definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return builder.ControllerManagedBy(mgr).
		For(&v1alpha1.CRDMigration{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(definitions, handler.EnqueueRequestsFromMapFunc(r.asked), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Named("crdmigration").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent, RateLimiter: Backoff()}).
		Complete(r)
}

// asked leaves out the definitions that nobody asks to migrate, which are most.
func (r *Reconciler) asked(ctx context.Context, crd client.Object) []reconcile.Request {
	key := client.ObjectKey{Name: crd.GetName()}
	if err := r.Client.Get(ctx, key, &v1alpha1.CRDMigration{}); apierrors.IsNotFound(err) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// Reconcile makes one pass, or says why it can't.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.CRDMigration{}
	err := r.Reader.Get(ctx, req.NamespacedName, m)
	if apierrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		r.forget(req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read crdmigration %s: %w", req.Name, err)
	}
	w, err := r.workOn(m)
	if err != nil {
		return reconcile.Result{}, err
	}
	v, pause := w.advance(ctx, m)
	if ctx.Err() != nil {
		w.status.leave(ctx)
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops: the evidence is saved, and the next one goes on from it
	}
	if err := w.status.write(ctx, v.apply); err != nil {
		return reconcile.Result{}, err
	}
	w.announce(&m.Status, v, time.Now())
	r.Metrics.ended(m.Name, v, time.Now())
	return reconcile.Result{RequeueAfter: pause}, nil
}

// workOn returns what is remembered of a migration. A changed spec starts anew.
func (r *Reconciler) workOn(m *v1alpha1.CRDMigration) (*work, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.works[m.Name]
	if w == nil || w.uid != m.UID || w.generation != m.Generation {
		w = &work{Reconciler: r, name: m.Name, uid: m.UID, generation: m.Generation, spec: withDefaults(m.Spec, r.Defaults)}
		var err error
		if w.migrator, err = w.newMigrator(); err != nil {
			return nil, err
		}
		if r.works == nil {
			r.works = map[string]*work{}
		}
		r.works[m.Name] = w
	}
	w.status = &status{client: r.Client, reader: r.Reader, written: m.DeepCopy()}
	return w, nil
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.works, name)
	r.Metrics.forget(name)
}

// withDefaults is what a migration does: its own spec, and the configuration where
// that says nothing.
func withDefaults(spec, defaults v1alpha1.CRDMigrationSpec) v1alpha1.CRDMigrationSpec {
	if len(spec.Phases) == 0 {
		spec.Phases = defaults.Phases
	}
	if spec.Write == "" {
		spec.Write = defaults.Write
	}
	if spec.Settle == nil {
		spec.Settle = defaults.Settle
	}
	if spec.Trim == nil {
		spec.Trim = defaults.Trim
	}
	if spec.MaxInFlight == nil {
		spec.MaxInFlight = defaults.MaxInFlight
	}
	if spec.MaxWritesPerSecond == nil {
		spec.MaxWritesPerSecond = defaults.MaxWritesPerSecond
	}
	return spec
}

// options are the migrator's, for a spec.
func options(spec v1alpha1.CRDMigrationSpec) crdmigrator.Options {
	o := crdmigrator.Options{Policy: crdmigrator.Policy{Write: crdmigrator.Write(spec.Write), SettleFromSight: true}}
	if spec.Settle != nil {
		if o.Settle = spec.Settle.Duration; o.Settle == 0 {
			o.Settle = -time.Nanosecond // none, where zero means the default
		}
	}
	o.NoTrim = !trims(spec)
	for _, phase := range crdmigrator.Phases {
		if !runs(spec, phase) {
			o.SkipPhases = append(o.SkipPhases, phase)
		}
	}
	return o
}

// runs: a spec without phases runs both.
func runs(spec v1alpha1.CRDMigrationSpec, phase crdmigrator.Phase) bool {
	return len(spec.Phases) == 0 || slices.Contains(spec.Phases, v1alpha1.Phase(phase))
}
