package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteWithoutDeprovisioning deletes an object whose deletion must not deprovision a host or a cluster: it removes the
// finalizers that would, while the object is paused, and then deletes. It returns why the deletion is not complete, or
// empty.
func DeleteWithoutDeprovisioning(ctx context.Context, c client.Client, o Object) (waits string, err error) {
	if len(o.Rule.Finalizers) > 0 {
		if _, paused := o.GetAnnotations()[o.Rule.Pause]; o.Rule.Pause != "" && !paused {
			return "", Fail(ReasonNotPrepared, "%s is not paused, so that its deletion would deprovision: set its annotation %s", name(c, o), o.Rule.Pause)
		}
		if err := Patch(ctx, c, o.Unstructured, func() error {
			kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return slices.Contains(o.Rule.Finalizers, f) })
			if len(kept) < len(o.GetFinalizers()) {
				o.SetFinalizers(kept)
			}
			return nil
		}); err != nil {
			return "", client.IgnoreNotFound(err)
		}
	}
	if err := Delete(ctx, c, o.Unstructured); err != nil {
		return "", err
	}
	if left := o.GetFinalizers(); len(left) > 0 {
		return fmt.Sprintf("%s is deleted when finalizer %s is removed", name(c, o), left[0]), nil
	}
	return "", nil
}

// DeleteAllWithoutDeprovisioning deletes objects in their order. It returns why the deletion of the first remaining
// object is not complete, or empty.
func DeleteAllWithoutDeprovisioning(ctx context.Context, c client.Client, objects []Object) (waits string, err error) {
	for _, o := range objects {
		left, err := DeleteWithoutDeprovisioning(ctx, c, o)
		if err != nil {
			return "", err
		}
		if waits == "" {
			waits = left
		}
	}
	return waits, nil
}

// DeleteSigningRequests deletes the CertificateSigningRequests of a cluster that is not at
// this hub any more. Ten of them would keep it from ever registering here again.
func (h Hub) DeleteSigningRequests(ctx context.Context, cluster string) error {
	requests, err := h.SigningRequests(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range requests {
		if err := Delete(ctx, h.Client, &requests[i]); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCluster deletes a ManagedCluster. It returns why the deletion is not complete, or empty when the object is
// gone.
func DeleteCluster(ctx context.Context, c client.Client, mc *clusterv1.ManagedCluster) (waits string, err error) {
	if mc.DeletionTimestamp.IsZero() {
		if err := Delete(ctx, c, mc); err != nil {
			return "", err
		}
		switch err := c.Get(ctx, client.ObjectKeyFromObject(mc), mc); {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", err
		}
	}
	if c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ManagedClusterConditionDeleting); c != nil && c.Reason == clusterv1.ConditionDeletingReasonResourceRemaining {
		return fmt.Sprintf("ManagedCluster %s is being deleted: %s", mc.Name, c.Message), nil
	}
	return fmt.Sprintf("ManagedCluster %s is being deleted; the registration controller of the hub removes its finalizers", mc.Name), nil
}
