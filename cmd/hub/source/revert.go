package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// RevertBootstrap begins to restore the klusterlets of clusters, without the bootstrap kubeconfig of the target hub. This restarts the agents,
// which helps an agent that chose the target and was not approved there. [Hub.AwaitReturn] or [Hub.EndRevert] ends it.
func (h Hub) RevertBootstrap(ctx context.Context, clusters []string) (cluster.Result, error) {
	w, err := h.way()
	if err != nil {
		return cluster.Result{}, err
	}
	r, err := h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.present(ctx, name)
		if err != nil {
			return "", err
		}
		if err := w.revert(ctx, mc); err != nil {
			return "", err
		}
		return "", h.restoreWorks(ctx, name)
	})
	if err != nil || len(r.Waiting) > 0 {
		return r, err
	}
	return r, w.unshare(ctx)
}

// EndRevert ends what RevertBootstrap has begun, for clusters that have never left the hub.
func (h Hub) EndRevert(ctx context.Context, clusters []string) (cluster.Result, error) {
	w, err := h.way()
	if err != nil {
		return cluster.Result{}, err
	}
	r, err := h.Each(ctx, clusters, w.end)
	if err != nil || len(r.Waiting) > 0 {
		return r, err
	}
	return r, w.unshare(ctx)
}
