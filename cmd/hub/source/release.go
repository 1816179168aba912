package source

import (
	"context"
	"errors"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// ReleaseClusters stops accepting clusters. The agent of a cluster then registers at the first hub of its bootstrap
// kubeconfigs that accepts it: the target. The target must accept the clusters before, and no eviction may delete its agents when it has left. A cluster without a ManagedCluster is released: only
// the target knows whether it has registered there.
func (h Hub) ReleaseClusters(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, original, err := h.prepared(ctx, name)
		if absent := (*cluster.Error)(nil); errors.As(err, &absent) && absent.Reason == cluster.ReasonNotFound {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if original.HubAcceptsClient == nil {
			if err := h.CheckOrphan(ctx, name); err != nil {
				return "", err
			}
		}
		// Again: users create ManifestWorks at any time, and change them.
		if waits, err := h.orphanWorks(ctx, name); err != nil || waits != "" && mc.Spec.HubAcceptsClient {
			return waits, err
		}
		return "", cluster.Patch(ctx, h.Client, mc, func() error {
			if original.HubAcceptsClient == nil {
				was := mc.Spec.HubAcceptsClient
				original.HubAcceptsClient = &was
			}
			mc.Spec.HubAcceptsClient = false
			return original.Save(mc)
		})
	})
}
