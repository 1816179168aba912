package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type forgetOptions struct {
	requestOptions
	all bool
}

func forgetCommand(a *frame.App) *cobra.Command {
	o := &forgetOptions{requestOptions: requestOptions{App: a}}
	c := &cobra.Command{
		Use:   "forget NAME {CLUSTER... | --all} [-n NAMESPACE] [--watch]",
		Short: "End a migration without clusters that can't end",
		Long: "Tell the manager to do nothing more for clusters of the migration NAME, such as one that is offline for\n" +
			"ever or whose deletion waits for a foreign finalizer. The other clusters continue, and the migration ends\n" +
			"without the forgotten ones. The command says what is left of each on which hub; nothing removes that\n" +
			"later.\n\n" +
			"Each cluster continues by itself from phase Registering on, so a cluster that hangs holds up the end of\n" +
			"the migration alone. In an earlier phase abort the migration instead.\n\n" + lostTargetHelp + " With\n" +
			"--all it ends at once, and without all of them, whether the target hub answers or not.\n\n" +
			"Exit codes: 0 requested, or with --watch the migration has ended; 3 refused, and nothing written; 2 error;\n" +
			"124 --timeout; 130 interrupted.",
		Example: "  " + a.Program + " cluster forget east cluster7\n\n" +
			"  # End a migration of `cluster move` at once, without its target hub\n" +
			"  " + a.Program + " cluster forget cluster1-move-1 --all --from-context=hub1",
		ValidArgsFunction: completeMigrations(a),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0, len(args) == 1 && !o.all:
				return frame.Usagef("specify the NAME of the migration, and then the clusters, or --all")
			case len(args) > 1 && o.all:
				return frame.Usagef("names of clusters and --all are mutually exclusive")
			}
			if err := o.parseDirect(); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, args[0], args[1:]) })
		},
	}
	frame.AddAll(c, &o.all, "all clusters with which the migration has not ended")
	o.addTo(c)
	return c
}

// forget is the planned end of a migration without clusters.
type forget struct {
	request
	clusters []string
}

func (o *forgetOptions) plan(ctx context.Context, name string, clusters []string) (frame.Change, error) {
	c, m, err := o.openMigration(ctx, o.App, clusterpermission.Run, name)
	if err != nil {
		return nil, err
	}
	if o.all {
		if clusters, err = allForgettable(o.App, c, m); err != nil {
			return nil, err
		}
	} else if err := c.checkLost(ctx, o.App, m, "forget "+name+" "+strings.Join(clusters, " ")); err != nil {
		return nil, err
	}
	for _, one := range clusters {
		if why := whyNotForgettable(o.App, c, m, one); why != "" {
			return nil, frame.Refuse(fmt.Errorf("%s %s can't end without %s: %s", c.kind(), name, one, why))
		}
	}
	if err := c.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	return &forget{request{requestOptions: &o.requestOptions, connection: c, migration: m}, clusters}, nil
}

// allForgettable returns the clusters with which a migration has not ended. Without one, it is an error, unless the migration waits for a lost
// target hub alone.
func allForgettable(a *frame.App, c *connection, m migration) ([]string, error) {
	var names []string
	for _, one := range m.state.Clusters {
		if !one.HasEnded() {
			names = append(names, one.Name)
		}
	}
	switch {
	case m.state.Settled():
		return nil, frame.Refuse(fmt.Errorf("%s %s has ended: nothing is left to do for it", c.kind(), m.Name))
	case !hub.ByCluster(m.state.Stage):
		return nil, frame.Refuse(fmt.Errorf("%s %s can't end without its clusters in phase %s; abort the migration: %s", c.kind(), m.Name, m.state.Phase, c.hint(a, "rollback "+m.Name)))
	case len(names) == 0 && !c.losesTarget():
		return nil, frame.Refuse(fmt.Errorf("%s %s waits for no cluster: see what it waits for: %s", c.kind(), m.Name, c.hint(a, "status "+m.Name)))
	}
	return names, nil
}

// whyNotForgettable returns why a migration can't end without a cluster, and what to do.
func whyNotForgettable(a *frame.App, c *connection, m migration, name string) string {
	if len(m.state.Forgettable([]string{name})) > 0 {
		return ""
	}
	for _, one := range m.state.Clusters {
		if one.Name == name && one.HasEnded() {
			return fmt.Sprintf("it is %s, and nothing is left to do for it", one.State)
		}
		if one.Name == name {
			return fmt.Sprintf("in phase %s all clusters still take each step together; abort the migration: %s", m.state.Phase, c.hint(a, "rollback "+m.Name))
		}
	}
	return "the migration does not have this cluster"
}

// Question implements frame.Change.
func (o *forget) Question() (string, error) {
	m := o.migration
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", clusterreport.Progress(m.report(o.connection)))
	for _, one := range m.state.Clusters {
		if slices.Contains(o.clusters, one.Name) {
			fmt.Fprintf(&text, "%s: %s\n", one.Name, m.state.Leaves(one))
		}
	}
	text.WriteString(o.connection.withoutTarget(m))
	if len(o.clusters) == 0 {
		fmt.Fprintf(&text, "End %s %s in namespace %s on %s?", o.connection.kind(), m.Name, m.Namespace, o.connection.Where())
		return text.String(), nil
	}
	fmt.Fprintf(&text, "End %s %s in namespace %s on %s without %s?", o.connection.kind(), m.Name, m.Namespace, o.connection.Where(), strings.Join(o.clusters, ", "))
	return text.String(), nil
}

// Run implements frame.Change. With the lock, another client's cluster in the list is not lost.
func (o *forget) Run(ctx context.Context) {
	o.patch(ctx, func(m *api.ManagedClusterMigration) {
		for _, one := range o.clusters {
			if !slices.Contains(m.Spec.ForgottenManagedClusters, one) {
				m.Spec.ForgottenManagedClusters = append(m.Spec.ForgottenManagedClusters, one)
			}
		}
	}, func(before client.Object) client.Patch {
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	})
}

// End implements frame.Change.
func (o *forget) End(ctx context.Context) error {
	if o.err != nil {
		return o.err
	}
	c, m := o.connection, o.migration
	for _, one := range m.state.Clusters {
		if slices.Contains(o.clusters, one.Name) {
			o.Console.Printf("%s %s ends without %s: %s\n", c.kind(), m.Name, one.Name, m.state.Leaves(one))
		}
	}
	return c.end(ctx, o.App, m, ending{o.output, o.watch, func(d clusterreport.Migration) frame.Code {
		if d.Settled {
			return frame.OK
		}
		return frame.Pending
	}})
}
