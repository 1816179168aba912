package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// AwaitReturn is done for a cluster when its lease was renewed twice since the first pass, and its klusterlet is as before. Conditions prove
// nothing: they stay True for minutes after a cluster has left.
func (h Hub) AwaitReturn(ctx context.Context, clusters []string, leases *cluster.Leases) (cluster.Result, error) {
	h.Hub = h.WithBatchReads(clusters)
	w, err := h.way()
	if err != nil {
		return cluster.Result{}, err
	}
	if p, ok := w.(plain); ok {
		if err := p.Returns.DecideReturns(ctx, clusters); err != nil {
			return cluster.Result{}, err
		}
	}
	r, err := h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		if _, err := h.present(ctx, name); err != nil {
			return "", err
		}
		fresh, err := leases.Fresh(ctx, h.Hub, name)
		switch {
		case err != nil:
			return "", err
		case fresh:
			return w.end(ctx, name)
		}
		return "the cluster has not renewed its lease on the source hub twice: restart its klusterlet if this lasts", nil
	})
	if err != nil || len(r.Waiting) > 0 {
		return r, err
	}
	return r, w.unshare(ctx)
}
