package rejoin

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// release removes a work as the owner of what it has applied, and then deletes it. The work agent deletes only what the work owns, and so does
// Kubernetes' garbage collector. A work that was released in part is released again.
func (r *Rejoin) release(ctx context.Context, w *workv1.AppliedManifestWork) error {
	for _, applied := range w.Status.AppliedResources {
		if err := r.disown(ctx, w, applied); err != nil {
			return fmt.Errorf("release what ManifestWork %s has applied on %s: %w", w.Spec.ManifestWorkName, r.Cluster, err)
		}
	}
	// With this policy, the garbage collector removes the work as the owner of what the status does not name.
	uid := w.UID
	err := client.IgnoreNotFound(r.Own.Delete(ctx, w, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	if err != nil {
		return fmt.Errorf("delete AppliedManifestWork %s of %s: %w", w.Name, r.Cluster, err)
	}
	return nil
}

// disown removes a work from the owners of an object.
func (r *Rejoin) disown(ctx context.Context, w *workv1.AppliedManifestWork, applied workv1.AppliedManifestResourceMeta) error {
	kind, err := r.Own.RESTMapper().KindFor(schema.GroupVersionResource{Group: applied.Group, Version: applied.Version, Resource: applied.Resource})
	if meta.IsNoMatchError(err) {
		return nil // its CRD is gone, and so is the object
	}
	if err != nil {
		return err
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err = r.Own.Get(ctx, client.ObjectKey{Namespace: applied.Namespace, Name: applied.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = cluster.Patch(ctx, r.Own, o, func() error {
			o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == w.UID })
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, applied.Name, err)
	}
	return nil
}
