package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// RestoreAcceptance restores hubAcceptsClient. It is the first step of every rollback: the source must accept the
// cluster before the target stops.
func (h Hub) RestoreAcceptance(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.present(ctx, name)
		if err != nil {
			return "", err
		}
		original, err := cluster.OriginalOf(mc, h.UID)
		if err != nil || original.HubAcceptsClient == nil {
			return "", err
		}
		return "", cluster.Patch(ctx, h.Client, mc, func() error {
			mc.Spec.HubAcceptsClient = *original.HubAcceptsClient
			original.HubAcceptsClient = nil
			return original.Save(mc)
		})
	})
}
