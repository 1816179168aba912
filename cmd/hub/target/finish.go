package target

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/objectname"
)

// FinishMoved removes the marks of the migration from the objects of clusters. First, the klusterlet must have the
// hub's own bootstrap kubeconfig: the migration's is revoked afterwards. The ManagedCluster comes last, so that the
// next pass after an interruption continues.
func (h Hub) FinishMoved(ctx context.Context, clusters []string) (cluster.Result, error) {
	h.Hub = h.Pass().WithBatchReads(clusters)
	return h.Each(ctx, clusters, h.finish)
}

func (h Hub) finish(ctx context.Context, name string) (waits string, err error) {
	mc, err := h.Find(ctx, name)
	switch {
	case err != nil:
		return "", err
	case mc == nil:
		return "", &cluster.GoneError{Message: fmt.Sprintf("the target hub has no ManagedCluster %s any more: a user has deleted it; import the cluster again if it is needed", name)}
	case !mc.DeletionTimestamp.IsZero():
		return fmt.Sprintf("ManagedCluster %s of the target hub is being deleted", name), nil
	}
	if ours, err := h.unfinished(ctx, mc); err != nil {
		return "", err
	} else if !ours {
		return h.finished(ctx, mc)
	}
	own := h.ownBootstrap
	if imports, err := h.Imports(); err != nil {
		return "", err
	} else if !imports {
		own = h.ownHub
	}
	if waits, err := own(ctx, mc); err != nil || waits != "" {
		return waits, err
	}
	if err := h.removeReturn(ctx, name); err != nil {
		return "", err
	}
	objects, err := h.Owned(ctx, name)
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		if err := h.release(ctx, o); err != nil {
			return "", err
		}
	}
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return "", err
	}
	if h.hasMarked(namespace) {
		if err := h.release(ctx, namespace); err != nil {
			return "", err
		}
	}
	return "", h.release(ctx, mc)
}

// unfinished reports whether a ManagedCluster is the migration's. An interrupted pass may have released its namespace already.
func (h Hub) unfinished(ctx context.Context, mc *clusterv1.ManagedCluster) (bool, error) {
	created, err := h.created(ctx, mc)
	if err != nil || created || !cluster.IsOwned(mc, h.UID) {
		return created, err
	}
	namespace, err := h.namespaceOf(ctx, mc.Name)
	return namespace != nil && !h.hasMarked(namespace), err
}

// finished returns what it waits for, or nothing if the ManagedCluster is known to be that of the cluster which has moved: an earlier pass has
// released it, or a user has imported the same cluster again. The source hub deletes what it has of the cluster afterwards.
func (h Hub) finished(ctx context.Context, mc *clusterv1.ManagedCluster) (waits string, err error) {
	if !mc.Spec.HubAcceptsClient || !isJoined(mc) {
		return "", &cluster.GoneError{Message: fmt.Sprintf("a user has deleted ManagedCluster %s of the target hub and created it again, and it has not joined", mc.Name)}
	}
	if h.Adopts || h.hasReleased(mc) {
		return "", nil
	}
	namespace, err := h.namespaceOf(ctx, mc.Name)
	if err != nil {
		return "", err
	}
	if namespace == nil && cluster.IsOwned(mc, h.UID) {
		return fmt.Sprintf("namespace %s of the target hub is gone: a user has deleted it, and the controllers of the hub create it again", mc.Name), nil
	}
	moved, there, hasRecord := h.Identities[mc.Name], cluster.IdentityOf(mc), namespace != nil && h.hasMarked(namespace)
	if moved == "" && hasRecord {
		moved = namespace.Annotations[cluster.AnnotationIdentity]
	}
	switch {
	case moved == "" && !hasRecord:
		return "", &cluster.GoneError{Message: fmt.Sprintf("a user has deleted ManagedCluster %s of the target hub and imported a cluster of this name: the target hub does not know whether it is the one that has moved; compare claim %s on both hubs",
			mc.Name, cluster.ClaimID)}
	case moved == "": // the source hub has no claim of it either
	case there == "":
		return fmt.Sprintf("a user has imported ManagedCluster %s of the target hub again, and it has not reported claim %s", mc.Name, cluster.ClaimID), nil
	case moved != there:
		return "", &cluster.GoneError{Message: fmt.Sprintf("a user has deleted ManagedCluster %s of the target hub, and another cluster has joined there under this name (%s %s, and the one that has moved has %s)",
			mc.Name, cluster.ClaimID, there, moved)}
	}
	return "", nil
}

// hasReleased reports whether an earlier pass has released a ManagedCluster. It has no mark of the migration then, but for the field manager that
// has created it.
func (h Hub) hasReleased(mc *clusterv1.ManagedCluster) bool {
	return !cluster.IsOwned(mc, h.UID) && slices.ContainsFunc(mc.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == h.fieldManager() })
}

// release restores the user's values and removes the marks of the migration in one update.
func (h Hub) release(ctx context.Context, o client.Object) error {
	original, err := cluster.OriginalOf(o, h.UID)
	if err != nil {
		return err
	}
	// The client needs the object itself, without the rule of a cluster.Object.
	if wrapped, ok := o.(cluster.Object); ok {
		o = wrapped.Unstructured
	}
	if err := cluster.Patch(ctx, h.Client, o, func() error {
		original.RestoreAll(o)
		cluster.UnmarkOwned(o)
		return original.Save(o)
	}); err != nil {
		return fmt.Errorf("release %s: %w", cluster.Name(h.Client, o), err)
	}
	return nil
}

// ownBootstrap restores the user's KlusterletConfig and automatic import: without automatic import, newer import
// controllers do not update klusterlets. It returns what it waits for until the klusterlet has the kubeconfig of this
// hub and no longer the source's.
func (h Hub) ownBootstrap(ctx context.Context, mc *clusterv1.ManagedCluster) (waits string, err error) {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	if original.Has(cluster.AnnotationNoAutoImport) {
		if err := h.RemoveToken(ctx, mc.Name); err != nil { // before the import controller looks for a token of a single hub
			return "", err
		}
	}
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		original.Restore(mc, cluster.AnnotationKlusterletConfig)
		original.Restore(mc, cluster.AnnotationNoAutoImport)
		return original.Save(mc)
	}); err != nil {
		return "", err
	}
	k, found, err := cluster.KlusterletOf(ctx, h.Client, mc.Name)
	missing := ""
	switch {
	case err != nil:
		return "", err
	case !found:
		missing = fmt.Sprintf("the import controller has not written ManifestWork %s", k.Name())
	case k.Kubeconfig(objectname.Return(mc.Name)) != nil:
		missing = fmt.Sprintf("the import controller has not removed the kubeconfig of the source hub from ManifestWork %s", k.Name())
	}
	return h.AwaitKlusterlet(k, missing), nil
}
