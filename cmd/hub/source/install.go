package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// InstallBootstrap adds the kubeconfig of the target hub to the klusterlets of clusters. It is done for a cluster when
// its klusterlet has it.
func (h Hub) InstallBootstrap(ctx context.Context, clusters []string, kubeconfig []byte) (cluster.Result, error) {
	if err := cluster.CheckKubeconfig(kubeconfig); err != nil {
		return cluster.Result{}, err
	}
	h.Hub = h.WithBatchReads(clusters)
	w, err := h.way()
	if err != nil {
		return cluster.Result{}, err
	}
	installed, shared, err := w.share(ctx, clusters, kubeconfig)
	if err != nil {
		return cluster.Result{}, err
	}
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		if shared != "" {
			return shared, nil
		}
		mc, err := h.cluster(ctx, name)
		if err != nil {
			return "", err
		}
		return w.install(ctx, mc, installed)
	})
}
