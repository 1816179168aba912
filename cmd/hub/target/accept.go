package target

import (
	"context"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// AcceptClusters accepts clusters, before the source hub releases them.
func (h Hub) AcceptClusters(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.ours(ctx, name)
		if err != nil {
			return "", err
		}
		if err := h.keepToken(ctx, mc); err != nil {
			return "", err
		}
		return "", cluster.Patch(ctx, h.Client, mc, func() error {
			mc.Spec.HubAcceptsClient = true
			return nil
		})
	})
}

// keepToken has the import controller keep its token until FinishMoved enables automatic import.
func (h Hub) keepToken(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil || !original.Has(cluster.AnnotationNoAutoImport) {
		return err
	}
	return h.KeepToken(ctx, mc.Name)
}
