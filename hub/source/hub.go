package source

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
	"github.com/godwit-dev/godwit/hub/resource"
)

// Hub is the source hub in one migration.
type Hub struct {
	Client client.Client
	Options
	Migration
}

// Options of the agent.
type Options struct {
	// AgentNamespace has the Placements by which users select clusters.
	AgentNamespace string
	// BootstrapNamespace is where the import controller reads bootstrap secrets;
	// multicluster-engine unless set.
	BootstrapNamespace string
	// Rules select what moves with a cluster; those of package resource unless set.
	Rules []resource.Rule
}

// Migration is what the actions know of it.
type Migration struct {
	// UID of the ManagedClusterMigration.
	UID string
	// To is the name of the target hub.
	To string
	// Reconnect is how long an agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
}

func (h Hub) rules() []resource.Rule {
	if h.Rules == nil {
		return resource.Rules()
	}
	return h.Rules
}

func (h Hub) bootstrapNamespace() string {
	return cmp.Or(h.BootstrapNamespace, "multicluster-engine")
}

// cluster reads a ManagedCluster, which must exist.
func (h Hub) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc)
	if apierrors.IsNotFound(err) {
		return nil, cluster.Fail(cluster.ReasonNotFound, "the source hub has no ManagedCluster %s: import it, or remove it from the migration", name)
	}
	return mc, err
}

// prepared reads a ManagedCluster that the migration has annotated, with its originals.
func (h Hub) prepared(ctx context.Context, name string) (*clusterv1.ManagedCluster, cluster.Original, error) {
	mc, err := h.cluster(ctx, name)
	if err != nil {
		return nil, cluster.Original{}, err
	}
	original, err := cluster.OriginalOf(mc, h.UID)
	if err == nil && !cluster.HasOriginal(mc, h.UID) {
		err = cluster.Fail(cluster.ReasonNotPrepared, "ManagedCluster %s has no annotation of the migration: a user has removed it or imported the cluster again; roll back", name)
	}
	return mc, original, err
}
