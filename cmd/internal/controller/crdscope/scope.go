// Package crdscope makes a CRDMigration for every CustomResourceDefinition in the
// manager's scope that has something to migrate, and takes it away again when the
// definition leaves the scope. It never writes an object of the migrated kinds.
package crdscope

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// Scope is a set of definitions.
type Scope []crdmigrator.Selector

// Holds needs metadata alone.
func (s Scope) Holds(crd metav1.Object) bool {
	return slices.ContainsFunc(s, func(one crdmigrator.Selector) bool { return one.Matches(crd) })
}

// What it needs to look at them, and to make and remove what asks for migrations.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list,namespace=kube-system

// Reconciler looks at definitions.
type Reconciler struct {
	Client client.Client
	Scope  Scope
	Maker  crdmigration.Maker
	// Planner reads storedVersions; Scanner reads managedFields of all objects, too,
	// which is done once for each state of a definition.
	Planner, Scanner *crdmigrator.Migrator

	mu      sync.Mutex
	scanned map[string]state // whose managedFields were found clean, by name
	unknown map[string]int   // scans in a row that did not list the objects, by name
}

// state of a definition.
type state struct {
	uid        types.UID
	generation int64
}

// toldAfter is the number of scans in a row, over a quarter of a minute, after
// which a CRDMigration tells users why the objects are not listed. An API server
// that starts or is under load lists them before.
const toldAfter = 5

// atOnce is how many definitions are looked at, most of them at the start: one whose
// conversion webhook hangs holds up no other.
const atOnce = 8

// deleted: a CRDMigration that is gone, by whomever, is made again where there is
// something to migrate. Nothing else would tell, since the definition is as it was.
var deleted = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.CRDMigration{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(deleted)).
		Named("crdscope").
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce, RateLimiter: crdmigration.Backoff()}).
		Complete(r)
}

// Reconcile makes or removes the CRDMigration of one definition. The owner
// reference removes it with the definition. Most definitions are out of scope, as
// the watch's own metadata tells; what is to be done about others is read live.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.Client.Get(ctx, req.NamespacedName, crd); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m := &v1alpha1.CRDMigration{}
	err := r.Client.Get(ctx, req.NamespacedName, m)
	switch exists := err == nil; {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("look for crdmigration %s: %w", req.Name, err)
	case crd.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case !r.Scope.Holds(crd):
		if exists && r.Maker.Made(m) {
			log.FromContext(ctx).Info("The definition left the scope: its CRDMigration goes")
			return reconcile.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
		}
		return reconcile.Result{}, nil
	case exists:
		return reconcile.Result{}, nil
	}
	due, err := r.due(ctx, crd)
	if err != nil {
		step := crdmigrator.Next(crdmigrator.Plan{}, crdmigrator.Report{}, err, crdmigrator.History{})
		return reconcile.Result{RequeueAfter: step.After}, step.Err
	}
	if !due {
		return reconcile.Result{}, nil
	}
	if err := r.Client.Create(ctx, r.Maker.For(crd)); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("create crdmigration %s: %w", crd.Name, err)
	}
	return reconcile.Result{}, nil
}

// due reports whether there is something to migrate, or to tell users. What the
// API server did not list is an error, which the queue retries with its backoff, and
// is never remembered as clean.
func (r *Reconciler) due(ctx context.Context, crd *metav1.PartialObjectMetadata) (bool, error) {
	plan, err := crdmigration.PlanFor(ctx, r.Planner, crd.Name)
	if err == nil && plan.State == crdmigrator.Clean && !r.knowsClean(crd) {
		plan, err = crdmigration.PlanFor(ctx, r.Scanner, crd.Name)
	}
	switch {
	case err != nil:
		return false, err
	case plan.State == crdmigrator.StateUnknown:
		return r.unlisted(plan)
	}
	r.listed(plan)
	return plan.State != crdmigrator.Clean, nil
}

func (r *Reconciler) knowsClean(crd *metav1.PartialObjectMetadata) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scanned[crd.Name] == state{crd.UID, crd.Generation}
}

// listed remembers what a scan, and nothing but a scan, has found clean.
func (r *Reconciler) listed(p crdmigrator.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unknown, p.Name)
	if p.State != crdmigrator.Clean || p.ManagedFields != crdmigrator.ManagedFieldsClean {
		return
	}
	if r.scanned == nil {
		r.scanned = map[string]state{}
	}
	r.scanned[p.Name] = state{p.UID, p.Generation}
}

// unlisted reports whether users are to be told, by a CRDMigration: it shows the
// reason and the remedy, and retries by itself.
func (r *Reconciler) unlisted(p crdmigrator.Plan) (tell bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unknown == nil {
		r.unknown = map[string]int{}
	}
	if p.Unlisted.Starting {
		return false, p.Unlisted
	}
	if r.unknown[p.Name]++; r.unknown[p.Name] < toldAfter {
		return false, p.Unlisted
	}
	delete(r.unknown, p.Name)
	return true, nil
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.scanned, name)
	delete(r.unknown, name)
	r.Planner.Forget(name)
	r.Scanner.Forget(name)
}
