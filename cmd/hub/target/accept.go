package target

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// AcceptClusters accepts clusters, before the source hub releases them.
func (h Hub) AcceptClusters(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.ours(ctx, name)
		if err != nil {
			return "", err
		}
		if !mc.Spec.HubAcceptsClient {
			if err := h.KeepToken(ctx, name); err != nil {
				return "", err
			}
		}
		return "", cluster.Patch(ctx, h.Client, mc, func() error {
			mc.Spec.HubAcceptsClient = true
			return nil
		})
	})
}
