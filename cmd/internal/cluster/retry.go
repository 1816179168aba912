package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type retryOptions struct {
	*frame.App
	creation
	failed bool
}

func retryCommand(a *frame.App) *cobra.Command {
	o := &retryOptions{App: a}
	c := &cobra.Command{
		Use:   "retry NAME --failed [-n NAMESPACE] [--watch]",
		Short: "Move the clusters that a migration has not moved",
		Long: "Create the migration NAME-retry-1, with the hubs, timeouts and choices of NAME and with the clusters that\n" +
			"NAME has not moved. A second retry is NAME-retry-2. The command does the preflight first, refuses what\n" +
			"is blocked, and asks.\n\n" +
			"NAME must have ended. A migration that has ended before it has resolved its Placement is tried again\n" +
			"with the Placement.\n\n" +
			"Exit codes: those of start.",
		Example:           "  " + a.Program + " cluster retry east --failed --from-context=hub1 --to-context=hub2",
		Args:              oneName,
		ValidArgsFunction: completeMigrations(a),
		RunE: func(c *cobra.Command, args []string) error {
			if !o.failed {
				return frame.Usagef("specify --failed, for all clusters that were not moved")
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, args[0]) })
		},
	}
	c.Flags().BoolVar(&o.failed, "failed", false, "all clusters that were not moved")
	o.creation.addTo(a, c)
	o.addAddressTo(c)
	return c
}

func (o *retryOptions) plan(ctx context.Context, name string) (frame.Change, error) {
	c, m, err := o.openRetried(ctx, name)
	if err != nil {
		return nil, err
	}
	if m.Status.CompletionTime == nil {
		return nil, frame.Refuse(fmt.Errorf("%s %s has not ended: nothing was written; wait for its end: %s",
			c.kind(), name, c.watchCommand(o.App, m)))
	}
	known, err := c.list(ctx, m.Namespace)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	next := retryOf(m, known)
	if next == nil {
		return nil, frame.Refuse(fmt.Errorf("%s %s has moved all of its clusters: nothing is left to retry", c.kind(), name))
	}
	switch {
	case c.pair == nil && o.givesAddress():
		return nil, frame.Usagef("migration %s is on a global hub, whose ManagedCluster %s has the address of the target hub: set its spec.managedClusterClientConfigs, and retry without --to-server and --to-ca-file", name, m.Spec.To)
	case c.pair != nil:
		if err := errors.Join(c.checkAddress(o.App, m.ManagedClusterMigration), direct.KeepAddress(next, c.pair.to.address)); err != nil {
			return nil, err
		}
	}
	return o.creation.plan(ctx, o.App, c, next)
}

// openRetried connects, and reads the migration. With both contexts it may be one that `cluster move` has carried out, or one on a global
// hub.
func (o *retryOptions) openRetried(ctx context.Context, name string) (*connection, migration, error) {
	if o.fromContext == "" || o.toContext == "" {
		return o.openMigration(ctx, o.App, clusterpermission.Run, name)
	}
	c, err := o.openDirect(ctx, o.App)
	if err != nil {
		return nil, migration{}, err
	}
	err = c.client.Get(ctx, client.ObjectKey{Namespace: c.scope.Namespace, Name: name}, &api.ManagedClusterMigration{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return o.openMigration(ctx, o.App, clusterpermission.Run, name)
	case err != nil:
		return nil, migration{}, c.explain(ctx, err)
	}
	m, err := c.find(ctx, name)
	return c, m, err
}

// retryOf returns a new migration of the clusters that m has not moved, or nil if m has moved all.
func retryOf(m migration, known []api.ManagedClusterMigration) *api.ManagedClusterMigration {
	next := &api.ManagedClusterMigration{Spec: *m.Spec.DeepCopy(), ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: nextName(m.Name, "retry", known)}}
	if len(m.state.Clusters) == 0 && m.Spec.IncludedManagedClustersPlacementRef != "" {
		return next
	}
	next.Spec.IncludedManagedClusters, next.Spec.IncludedManagedClustersPlacementRef, next.Spec.ForgottenManagedClusters = nil, "", nil
	for _, one := range m.state.Clusters {
		if one.State == hub.Selected || one.State == hub.Returning || one.State == hub.Returned || one.State == hub.Restored {
			next.Spec.IncludedManagedClusters = append(next.Spec.IncludedManagedClusters, api.ClusterName(one.Name))
		}
	}
	if len(next.Spec.IncludedManagedClusters) == 0 {
		return nil
	}
	return next
}
