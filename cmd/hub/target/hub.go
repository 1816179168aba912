package target

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Hub is the target hub in one migration.
type Hub struct {
	cluster.Hub
	// Account is the ServiceAccount with whose token clusters register. Migrations between the same hubs share it.
	Account types.NamespacedName
	// Reconnect is how long an agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
	// Returns means that clusters return to this hub, without an import controller that would approve them. They have joined it before.
	Returns bool
	// Denied is called with the CertificateSigningRequests of the account that the migration has denied, each with the reason. Nil means no call.
	Denied func(requests []string)
	// Issued is called with the expiry of the certificate that a cluster has got by the migration and does not need here any more, from several
	// goroutines. Nil means no call.
	Issued func(cluster string, expiry time.Time)
}

// foreign returns the failure of a ManagedCluster that the migration has not created.
func foreign(name string) error {
	return cluster.Fail(cluster.ReasonForeignObject, "ManagedCluster %s on the target hub was not created by the migration: delete it if the cluster is to move", name)
}

// ours reads the ManagedCluster that the migration has created.
func (h Hub) ours(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := h.Find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case mc == nil:
		return nil, cluster.Fail(cluster.ReasonNotPrepared, "the target hub has no ManagedCluster %s: a user has deleted it; start another migration", name)
	case !cluster.IsOwned(mc, h.UID):
		return nil, foreign(name)
	}
	return mc, nil
}
