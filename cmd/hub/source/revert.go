package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// RevertBootstrap restores the annotations of clusters. The import controller then removes the bootstrap kubeconfig of
// the target hub from their klusterlets. This restarts the agents, which helps an agent that chose the target and was
// not approved there. The ManifestWorks own the klusterlet again.
func (h Hub) RevertBootstrap(ctx context.Context, clusters []string) (cluster.Result, error) {
	r, err := h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.present(ctx, name)
		if err != nil {
			return "", err
		}
		original, err := cluster.OriginalOf(mc, h.UID)
		if err != nil {
			return "", err
		}
		if err := cluster.Patch(ctx, h.Client, mc, func() error {
			for _, annotation := range []string{cluster.AnnotationKlusterletConfig, cluster.AnnotationMigrating, cluster.AnnotationNoAutoImport} {
				original.Restore(mc, annotation)
			}
			return original.Save(mc)
		}); err != nil {
			return "", err
		}
		if err := h.restoreWorks(ctx, name); err != nil {
			return "", err
		}
		return "", h.OwnKlusterlet(ctx, name)
	})
	if err != nil || len(r.Waiting) > 0 {
		return r, err
	}
	return r, h.removeShared(ctx)
}

// RenewTokens has the import controller issue other tokens for clusters that have never left the hub.
func (h Hub) RenewTokens(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		if err := h.RenewToken(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
