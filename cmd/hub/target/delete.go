package target

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// DeleteCreated deletes the objects that the migration has created for clusters that have returned, and no others.
// Hosts stay paused, so that none is deprovisioned. It keeps a namespace that existed before. A ManagedCluster with the
// label of the migration and without its proof stays, and the result says so in Gone.
func (h Hub) DeleteCreated(ctx context.Context, clusters []string) (cluster.Result, error) {
	h.Hub = h.Pass()
	return h.Each(ctx, clusters, h.deleteCreated)
}

func (h Hub) deleteCreated(ctx context.Context, name string) (waits string, err error) {
	mc, err := h.Find(ctx, name)
	if err != nil {
		return "", err
	}
	created, err := h.created(ctx, mc)
	if err != nil {
		return "", err
	}
	if created && mc.Spec.HubAcceptsClient {
		return "", cluster.Fail(cluster.ReasonNotPrepared, "the target hub accepts %s again: set spec.hubAcceptsClient of its ManagedCluster there to false", name)
	}
	if waits, err := h.deleteObjects(ctx, name); err != nil || waits != "" {
		return waits, err
	}
	if created {
		if waits, err := h.deleteCluster(ctx, mc); err != nil || waits != "" {
			return waits, err
		}
	}
	if err := h.removeReturn(ctx, name); err != nil {
		return "", err
	}
	if err := h.deleteNamespace(ctx, name, mc); err != nil {
		return "", err
	}
	if mc != nil && !created && cluster.IsOwned(mc, h.UID) && mc.DeletionTimestamp.IsZero() {
		return "", &cluster.GoneError{Message: unproven(mc) + ": it stays on the target hub"}
	}
	return "", nil
}

// deleteNamespace deletes the namespace of a cluster, or restores one that existed before. mc is the ManagedCluster, if there is one.
func (h Hub) deleteNamespace(ctx context.Context, name string, mc *clusterv1.ManagedCluster) error {
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch {
	case cluster.HasOriginal(namespace, h.UID):
		return h.restoreNamespace(ctx, namespace, mc != nil && !cluster.IsOwned(mc, h.UID))
	case !cluster.IsOwned(namespace, h.UID) || mc != nil && !cluster.IsOwned(mc, h.UID):
		return nil // of a user, or of a cluster that a user has imported since
	}
	// The contents of the namespace are gone, so nothing waits for its deletion. A later migration reports a namespace
	// that is being deleted.
	return cluster.Delete(ctx, h.Client, namespace)
}

// deleteCluster deletes a ManagedCluster that the migration has created.
func (h Hub) deleteCluster(ctx context.Context, mc *clusterv1.ManagedCluster) (waits string, err error) {
	if err := h.DeleteSigningRequests(ctx, mc.Name); err != nil {
		return "", err
	}
	if err := h.releaseWorks(ctx, mc.Name); err != nil {
		return "", err
	}
	if err := h.pin(ctx, mc); err != nil {
		return "", err
	}
	return cluster.DeleteCluster(ctx, h.Client, mc)
}

// namespaceLabels are the labels by which controllers of the hub recognize the namespace of a cluster.
var namespaceLabels = []string{clusterv1.ClusterNameLabelKey, "cluster.open-cluster-management.io/managedCluster"}

// restoreNamespace restores a namespace that was there before the ManagedCluster. The update that removes the annotation also removes the
// labels of the hub's controllers: with them, the import controller deletes a namespace without a ManagedCluster. inUse means that a user has
// imported a cluster of this name since.
func (h Hub) restoreNamespace(ctx context.Context, namespace *corev1.Namespace, inUse bool) error {
	original, err := cluster.OriginalOf(namespace, h.UID)
	if err != nil {
		return err
	}
	if err := cluster.Patch(ctx, h.Client, namespace, func() error {
		keep := inUse || original.Annotations[cluster.AnnotationRetain].Was != nil
		original.RestoreAll(namespace)
		if !keep {
			labels := maps.Clone(namespace.Labels)
			for _, label := range namespaceLabels {
				delete(labels, label)
			}
			namespace.Labels = labels
		}
		cluster.UnmarkOwned(namespace)
		return original.Save(namespace)
	}); err != nil {
		return fmt.Errorf("restore namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// deleteObjects deletes the objects of a cluster that the migration has created, except its
// ManagedCluster and its namespace.
func (h Hub) deleteObjects(ctx context.Context, name string) (waits string, err error) {
	if h.Emptied.Has(name) {
		return "", nil
	}
	objects, err := h.Owned(ctx, name)
	if err != nil {
		return "", err
	}
	if waits, err := cluster.DeleteAllWithoutDeprovisioning(ctx, h.Client, objects); err != nil || waits != "" {
		return waits, err
	}
	h.Emptied.Add(name)
	return "", nil
}
