package crdmigration

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// passesAtOnce is how many passes run at the same time. They share one limiter, so more of them do not add load. A pass
// whose webhook does not answer takes minutes, and an operator has one webhook for many CRDs.
const passesAtOnce = 32

// A failed reconciliation is retried after these times, doubling. While the API server does not answer, all fail; a
// recovered API server is noticed within maxBackoff.
const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
)

// Backoff returns the backoff of both reconcilers of the storage version migrator.
func Backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxBackoff)
}

// What it needs to carry them out. Only an installation knows the groups of the objects that
// it migrates; package operator adds their rules. The verb for the manager's own kinds, which
// it migrates like any other, is here.
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades;controllerrevisionupgradetriggers,verbs=list;patch
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=patch
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list
// What the preflight tries, and what it names.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;mutatingadmissionpolicies;validatingwebhookconfigurations,verbs=list
// The API servers' identities and addresses, and events about objects without a namespace.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list,namespace=kube-system
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list,namespace=default
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return builder.ControllerManagedBy(mgr).
		For(&v1alpha1.CRDMigration{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(crds, handler.EnqueueRequestsFromMapFunc(r.requested), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Named("crdmigration").
		WithOptions(controller.Options{MaxConcurrentReconciles: passesAtOnce, RateLimiter: Backoff()}).
		Complete(r)
}

// requested ignores the CRDs without a CRDMigration, which are most.
func (r *Reconciler) requested(ctx context.Context, crd client.Object) []reconcile.Request {
	key := client.ObjectKey{Name: crd.GetName()}
	if err := r.Client.Get(ctx, key, &v1alpha1.CRDMigration{}); apierrors.IsNotFound(err) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// Reconcile makes one pass over a migration. A migration that waits has no worker.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.CRDMigration{}
	err := r.Reader.Get(ctx, req.NamespacedName, m)
	if apierrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		r.drop(req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read crdmigration %s: %w", req.Name, err)
	}
	w, err := r.migrationOf(m)
	if err != nil {
		return reconcile.Result{}, err
	}
	o, after := w.advance(ctx, m)
	if ctx.Err() != nil {
		w.status.Flush(ctx)
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops: the evidence is saved, and the next manager resumes from it
	}
	if err := w.status.Write(ctx, o.apply); err != nil {
		return reconcile.Result{}, err
	}
	w.reported = o.announce(r.Recorder, m, w.reported, time.Now())
	r.Metrics.countPass(m.Name, o, time.Now())
	return reconcile.Result{RequeueAfter: after}, nil
}

// migrationOf returns the manager's memory of a migration. It starts with an empty one after a change of the spec.
func (r *Reconciler) migrationOf(m *v1alpha1.CRDMigration) (*migration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.migrations[m.Name]
	if !w.isFor(m) {
		var err error
		if w, err = r.newMigration(m); err != nil {
			return nil, err
		}
		if r.migrations == nil {
			r.migrations = map[string]*migration{}
		}
		r.migrations[m.Name] = w
	}
	w.status = status.NewWriter(r.Client, r.Reader, m)
	return w, nil
}

func (r *Reconciler) drop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.migrations, name)
	r.Metrics.drop(name)
}
