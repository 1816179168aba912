// Package crdscope creates a CRDMigration for every CRD in the manager's scope that has
// something to migrate, and deletes it when the CRD leaves the scope. It never writes an object
// of a migrated kind.
//
// Read scope.go and memory.go in this order.
package crdscope

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Scope is a set of CRDs.
type Scope []crdmigrator.Selector

// Holds reports whether a CRD is in the scope. It needs only the metadata.
func (s Scope) Holds(crd metav1.Object) bool {
	return slices.ContainsFunc(s, func(one crdmigrator.Selector) bool { return one.Matches(crd) })
}

// What it needs to read CRDs, and to create and delete CRDMigrations.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=godwit.dev,resources=crdmigrations,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list,namespace=kube-system
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list,namespace=default

// Reconciler decides for each CRD whether it needs a CRDMigration.
type Reconciler struct {
	Client   client.Client
	Scope    Scope
	Instance crdmigration.InstanceID
	// Planner reads storedVersions. Scanner also reads managedFields of all objects, once for each generation of a CRD.
	Planner, Scanner *storageversion.Migrator

	memory memory
}

// scansAtOnce is how many CRDs are read at the same time, most of them at the start: a CRD whose conversion webhook
// does not answer does not delay the others.
const scansAtOnce = 8

// deleted passes only deletions. A CRDMigration that a user deleted is created again if the CRD needs a migration: the
// CRD has not changed, so no other event follows.
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
		WithOptions(controller.Options{MaxConcurrentReconciles: scansAtOnce, RateLimiter: crdmigration.Backoff()}).
		Complete(r)
}

// Reconcile creates or deletes the CRDMigration of one CRD. The owner reference deletes it with the CRD. Most CRDs are
// out of scope according to the metadata of the watch; the others are read from the API server.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.Client.Get(ctx, req.NamespacedName, crd); err != nil {
		if apierrors.IsNotFound(err) {
			r.drop(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m := &v1alpha1.CRDMigration{}
	err := r.Client.Get(ctx, req.NamespacedName, m)
	exists := err == nil
	switch {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("read crdmigration %s: %w", req.Name, err)
	case crd.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case r.Scope.Holds(crd) && !exists:
		return r.ensure(ctx, crd)
	case !r.Scope.Holds(crd) && exists && r.Instance.Created(m):
		log.FromContext(ctx).Info("The CRD left the scope: its CRDMigration is deleted")
		return reconcile.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
	}
	return reconcile.Result{}, nil
}

// ensure creates the CRDMigration of a CRD that needs one.
func (r *Reconciler) ensure(ctx context.Context, crd *metav1.PartialObjectMetadata) (reconcile.Result, error) {
	needed, err := r.needsMigration(ctx, crd)
	if err != nil {
		step := decision.Next(decision.Plan{}, decision.Report{}, err, decision.History{})
		return reconcile.Result{RequeueAfter: step.After}, step.Err
	}
	if !needed {
		return reconcile.Result{}, nil
	}
	if err := r.Client.Create(ctx, r.Instance.New(crd)); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("create crdmigration %s: %w", crd.Name, err)
	}
	return reconcile.Result{}, nil
}

// needsMigration reports whether a CRD needs a migration, or a report to users. If the API server does not answer a
// list, it returns an error, which the queue retries with its backoff; such a CRD is never recorded as clean.
func (r *Reconciler) needsMigration(ctx context.Context, crd *metav1.PartialObjectMetadata) (bool, error) {
	plan, err := crdmigration.PlanFor(ctx, r.Planner, crd.Name)
	if err == nil && plan.State == decision.Clean && !r.memory.isClean(crd) {
		plan, err = crdmigration.PlanFor(ctx, r.Scanner, crd.Name)
	}
	switch {
	case err != nil:
		return false, err
	case plan.State != decision.StateUnknown:
		r.memory.recordClean(plan)
		return plan.State != decision.Clean, nil
	case !plan.Unlisted.Starting && r.memory.recordUnlisted(plan):
		return true, nil
	}
	return false, plan.Unlisted
}

func (r *Reconciler) drop(name string) {
	r.memory.drop(name)
	r.Planner.Forget(name)
	r.Scanner.Forget(name)
}
