// Package crdinventory records which CRDs of the cluster have old versions in status.storedVersions, including CRDs
// that the manager does not migrate. It only reads.
//
// The watch of the manager has the metadata of CRDs alone, because their schemas are large. The inventory lists all CRDs once, in
// pages, and then reads each one that changes.
//
// Read inventory.go and metrics.go in this order.
package crdinventory

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
)

// What it needs to read CRDs.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Name of the controller, in logs and metrics.
const Name = "crdinventory"

// Reconciler keeps the inventory.
type Reconciler struct {
	Client client.Client
	Reader client.Reader // live
	// InScope reports whether the manager chooses a CRD.
	InScope func(crd metav1.Object) bool

	mu     sync.Mutex
	listed bool             // all CRDs once
	crds   map[string]entry // by name
}

// entry is the data of a CRD in the inventory.
type entry struct {
	resourceVersion string
	inScope         bool
	old             int // versions in status.storedVersions besides the storage version
}

func (r *Reconciler) entryOf(crd *apiextensionsv1.CustomResourceDefinition) entry {
	storage := ""
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			storage = v.Name
		}
	}
	e := entry{resourceVersion: crd.ResourceVersion, inScope: r.InScope(crd)}
	for _, v := range crd.Status.StoredVersions {
		if v != storage {
			e.old++
		}
	}
	return e
}

// SetupWithManager registers the reconciler. It reads one CRD at a time: no request of a migration waits for an inventory.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Named(Name).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: crdmigration.Backoff()}).
		Complete(r)
}

// Reconcile reads one CRD, unless the list of all CRDs had the same generation. The first call lists all CRDs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := r.listOnce(ctx); err != nil {
		return reconcile.Result{}, err
	}
	seen := &metav1.PartialObjectMetadata{}
	seen.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.Client.Get(ctx, req.NamespacedName, seen); err != nil {
		return reconcile.Result{}, r.dropIfGone(req.Name, err)
	}
	if r.known(req.Name).resourceVersion == seen.ResourceVersion {
		return reconcile.Result{}, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Reader.Get(ctx, req.NamespacedName, crd); err != nil {
		return reconcile.Result{}, r.dropIfGone(req.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crds[crd.Name] = r.entryOf(crd)
	return reconcile.Result{}, nil
}

// pageCRDs bounds the memory of a page. A CRD with its schemas has up to a megabyte.
const pageCRDs = 25

// listOnce lists all CRDs at its first call. CRDs may change during the list: the watch has an event for them.
func (r *Reconciler) listOnce(ctx context.Context) error {
	if _, listed := r.entries(); listed {
		return nil
	}
	crds := map[string]entry{}
	page := &apiextensionsv1.CustomResourceDefinitionList{}
	for first := true; first || page.Continue != ""; first = false {
		options := []client.ListOption{client.Limit(pageCRDs), client.Continue(page.Continue)}
		page = &apiextensionsv1.CustomResourceDefinitionList{}
		if err := r.Reader.List(ctx, page, options...); err != nil {
			return fmt.Errorf("list CRDs for the inventory: %w", err)
		}
		for i := range page.Items {
			crds[page.Items[i].Name] = r.entryOf(&page.Items[i])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crds, r.listed = crds, true
	return nil
}

func (r *Reconciler) known(name string) entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crds[name]
}

func (r *Reconciler) dropIfGone(name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read CRD %s for the inventory: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.crds, name)
	return nil
}

// entries returns a copy of all entries, and whether the CRDs were listed.
func (r *Reconciler) entries() (all map[string]entry, listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.crds), r.listed
}
