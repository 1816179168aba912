package source

import (
	"context"
	"fmt"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Registration lets clusters register at this hub again.
type Registration interface {
	// GrantRegistration grants an account the permission. It returns what it waits for, or empty.
	GrantRegistration(ctx context.Context) (waits string, err error)
	// IssueToken issues a token of the account.
	IssueToken(ctx context.Context, lifetime time.Duration) (token string, err error)
	// DecideReturns decides about the requests of the account, for clusters that are awaited.
	DecideReturns(ctx context.Context, awaits []string) error
	// RevokeRegistration removes what the others have added, unless another migration needs it.
	RevokeRegistration(ctx context.Context) error
}

// Hub is the source hub in one migration.
type Hub struct {
	cluster.Hub
	// AgentNamespace is the namespace of the Placements with which users select clusters.
	AgentNamespace string
	// To is the name of the target hub.
	To string
	// Reconnect is how long an agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
	// Returns lets clusters that return register. Only a hub without the import controller needs it.
	Returns Registration
	// OnEvictedWorks and OnUserObjects are the choices of the user for what the move would destroy. If they are empty, nothing is
	// checked.
	OnEvictedWorks api.EvictedWorksPolicy
	OnUserObjects  api.UserObjectsPolicy
	// Warn is called by ValidateSource, at the same time for several clusters, with what may keep the migration of a cluster from its end. It is
	// called again with each pass; nil means that nothing is looked for.
	Warn func(cluster string, found []godwit.Finding)
}

// cluster reads a ManagedCluster, which must exist.
func (h Hub) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := h.Find(ctx, name)
	if err == nil && mc == nil {
		return nil, cluster.Fail(cluster.ReasonNotFound, "the source hub has no ManagedCluster %s: import it, or remove it from the migration", name)
	}
	return mc, err
}

// present reads a ManagedCluster that an action restores. If a user has deleted it, the action is done.
func (h Hub) present(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := h.Find(ctx, name)
	if err == nil && mc == nil {
		return nil, &cluster.GoneError{Message: fmt.Sprintf("the source hub has no ManagedCluster %s any more: a user has deleted it", name)}
	}
	return mc, err
}

// prepared reads a ManagedCluster that the migration has annotated, and its original values.
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

// needed reports whether a ManagedCluster of the hub has something of the migration to restore.
func (h Hub) needed(ctx context.Context) (bool, error) {
	clusters := &clusterv1.ManagedClusterList{}
	if err := h.Client.List(ctx, clusters); err != nil {
		return false, err
	}
	for i := range clusters.Items {
		if cluster.HasOriginal(&clusters.Items[i], h.UID) {
			return true, nil
		}
	}
	return false, nil
}
