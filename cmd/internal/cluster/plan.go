package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type planOptions struct {
	*frame.App
	selection
	hubFlags
	output frame.Output
}

func planCommand(a *frame.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:     "plan --from=HUB --to=HUB {CLUSTER... | --placement=NAME} [--from-context=CONTEXT] [--to-context=CONTEXT] | CLUSTER --to-context=CONTEXT --cluster-context=CONTEXT",
		Aliases: []string{"preflight"},
		Short:   "Show which clusters a migration would move, which would be at risk, and what blocks; changes nothing",
		Long: "Show which clusters a migration would move, which would be at risk, and what blocks. This command\n" +
			"only reads.\n\n" +
			"On the global hub it checks the two hubs, the keys and heartbeats of their agents, and other migrations.\n" +
			"With --from-context and --to-context it also runs the checks of the migration on both hubs (one that\n" +
			"is the global hub needs no context), and lists what does not move: ManifestWorks, add-ons, cluster\n" +
			"sets, and kinds that the target hub does not serve. What it can't read is NotChecked, with the flag\n" +
			"that changes that. With both contexts and without --from and --to, it checks a move without a global\n" +
			"hub, as `" + a.Program + " cluster move` makes it. With --cluster-context, the context of a cluster whose\n" +
			"hub is lost, it checks what `cluster move` would do with the same flags.\n\n" +
			"The work agent of a cluster deletes what a ManifestWork has applied 60 minutes after the move (by default),\n" +
			"unless the delete option of the ManifestWork is Orphan. The source hub deletes the namespace of the\n" +
			"cluster, with Secrets and ConfigMaps that no rule moves. Both block the cluster until you choose what\n" +
			"becomes of them, with --on-evicted-works and --on-user-objects. The migration checks the same.\n\n" +
			"The manager publishes when it has received the last heartbeat of each agent. One that is older than\n" +
			"60 s blocks. Without a manager that runs, the agents are NotChecked.\n\n" +
			"Exit codes: 0 ready; 1 nothing blocks, and clusters are at risk or something is not checked; 3\n" +
			"blocked; 2 error.",
		Example: "  # A move between two contexts\n" +
			"  " + a.Program + " cluster plan cluster1 cluster2 --from-context=hub1 --to-context=hub2\n\n" +
			"  # The source hub never returns\n" +
			"  " + a.Program + " cluster plan cluster1 --to-context=hub2 --cluster-context=cluster1\n\n" +
			"  # What the global hub knows\n" +
			"  " + a.Program + " cluster plan --from=hub1 --to=hub2 cluster1 cluster2\n\n" +
			"  # With the checks on both hubs, by contexts of the kubeconfig\n" +
			"  " + a.Program + " cluster plan --from=hub1 --to=hub2 --placement=east --from-context=hub1 --to-context=hub2",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if o.clusterContext != "" {
				if err := o.parseLost(c, o.hubFlags, args); err != nil {
					return err
				}
				return o.runLost(c.Context())
			}
			if err := o.parsePlan(args); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.selection.addTo(a, c)
	o.hubFlags.addTo(a, c)
	o.addClusterContextTo(a, c)
	o.addAddressTo(c)
	o.output.AddTo(c, clusterreport.NoPreflight("", ""))
	return c
}

// parsePlan checks the flags. Two contexts without --from and --to are a move without a global hub.
func (o *planOptions) parsePlan(clusters []string) error {
	if o.from != "" || o.to != "" || o.fromContext == "" || o.toContext == "" {
		return o.parse(clusters)
	}
	o.direct = true
	return o.parseClusters(clusters)
}

func (o *planOptions) run(ctx context.Context) error {
	c, err := o.open(ctx, o.App, clusterpermission.Preflight)
	if err != nil {
		return err
	}
	if c.pair != nil {
		o.from, o.to = c.pair.names()
	}
	p, err := c.preflight(ctx, o.App, o.request(o.hubFlags), o.hubFlags)
	if err != nil {
		return err
	}
	return o.print(p)
}

// runLost checks a move by the context of the cluster.
func (o *planOptions) runLost(ctx context.Context) error {
	m, err := o.openLost(ctx, o.App, o.clusters[0])
	if err != nil {
		return err
	}
	p, err := m.Preflight(ctx)
	if err != nil {
		return err
	}
	return o.print(p)
}

func (o *planOptions) print(p clusterreport.Preflight) error {
	if err := frame.WriteDocument(o.Streams.Out, o.output, p, p.Names(), writePreflight(o.App, o.output, p)); err != nil {
		return err
	}
	return frame.Exit(preflightCode(p.Decision))
}
