package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report/clusterreport"
)

type preflightOptions struct {
	*cli.App
	selection
	hubFlags
	output cli.Output
}

func preflightCommand(a *cli.App) *cobra.Command {
	o := &preflightOptions{App: a}
	empty := clusterreport.NoPreflight("", "")
	c := &cobra.Command{
		Use:   "preflight --from=HUB --to=HUB {CLUSTER... | --placement=NAME} [--from-context=CONTEXT] [--to-context=CONTEXT]",
		Short: "Show which clusters a migration would move, which would be at risk, and what blocks; changes nothing",
		Long: "Show which clusters a migration would move, which would be at risk, and what blocks. This command\n" +
			"only reads.\n\n" +
			"On the global hub it looks at the two hubs, at the keys of their agents and at other migrations.\n" +
			"With --from-context and --to-context it also runs the checks of the migration on both hubs, and\n" +
			"looks at what does not move: ManifestWorks, add-ons, cluster sets, and kinds that the target hub\n" +
			"does not serve. What it can't look at is NotChecked, with the flag that changes that.\n\n" +
			"The work agent of a cluster deletes what a ManifestWork has applied 60 minutes after the move,\n" +
			"unless the delete option of the ManifestWork is Orphan. Such a ManifestWork blocks its cluster\n" +
			"unless you give --accept-evicted-works.\n\n" +
			"Only the manager receives the heartbeats of agents, so that they are always NotChecked. The manager\n" +
			"checks them when the migration starts, and sends nothing to a hub without one.\n\n" +
			"Exit codes: 1 nothing blocks, clusters are at risk or something is not checked; 3 blocked; 2 error.",
		Example: "  # What the global hub knows\n" +
			"  " + a.Program + " cluster preflight --from=hub1 --to=hub2 cluster1 cluster2\n\n" +
			"  # With a look at both hubs, by contexts of the kubeconfig\n" +
			"  " + a.Program + " cluster preflight --from=hub1 --to=hub2 --placement=east --from-context=hub1 --to-context=hub2",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			err := o.parse(args)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, empty, err)
		},
	}
	cli.ListOnFlagError(a, c, empty)
	c.Flags().SortFlags = false
	o.selection.addTo(a, c)
	o.hubFlags.addTo(a, c)
	o.output.AddTo(c)
	return c
}

func (o *preflightOptions) run(ctx context.Context) error {
	namespace, err := namespaceOf(o.App)
	if err != nil {
		return err
	}
	c, err := dialGlobal(ctx, o.App, permission.ClusterPreflight, permission.Scope{Namespace: namespace, Installation: o.managerNamespace})
	if err != nil {
		return err
	}
	p, err := c.look(ctx, o.App, o.request(o.hubFlags), o.hubFlags)
	if err != nil {
		return err
	}
	if err := cli.WriteDocument(o.Streams.Out, o.output, p, p.Names(), writePreflight(o.App, o.output, p)); err != nil {
		return err
	}
	return cli.Exit(preflightCode(p.Decision))
}
