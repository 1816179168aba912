package source

import (
	"context"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// way is how the hub configures the klusterlets of its clusters.
type way interface {
	// share creates what the clusters of a migration share. It returns the kubeconfig of the target hub that they get.
	share(ctx context.Context, clusters []string, kubeconfig []byte) (installed []byte, waits string, err error)
	// install adds the kubeconfig of the target hub to a klusterlet. It returns what it waits for until the klusterlet has it.
	install(ctx context.Context, mc *clusterv1.ManagedCluster, kubeconfig []byte) (waits string, err error)
	// revert begins to restore a klusterlet. The cluster may have no hub yet.
	revert(ctx context.Context, mc *clusterv1.ManagedCluster) error
	// end ends for a cluster that is at this hub what install has begun.
	end(ctx context.Context, name string) (waits string, err error)
	// unshare deletes what share has created, if no cluster of this migration and no other migration needs it.
	unshare(ctx context.Context) error
}

// way returns the way by what the hub serves.
func (h Hub) way() (way, error) {
	imports, err := h.Imports()
	if err != nil || imports {
		return imported{h}, err
	}
	return plain{h}, nil
}
