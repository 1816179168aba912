package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type moveOptions struct {
	*frame.App
	selection
	creation
	timeouts
}

// moveHelp describes a move with both hubs.
const moveHelp = "Move managed clusters from the hub of one context of the kubeconfig to that of another one. Nothing has to\n" +
	"be installed on the hubs. The clusters that the target hub does not register return to the source hub.\n\n" +
	"The command checks first, refuses what is blocked, and asks. Then it carries the move out until its end.\n" +
	"The state is in namespace " + direct.Namespace + " of the source hub: after Ctrl-C or a crash the same command line\n" +
	"continues, also on another machine. The time between does not count. A Lease keeps two of them apart.\n" +
	"A Placement is in that namespace, too.\n\n" +
	"status, rollback, retry and forget have the same flags, and plan has them for the check alone.\n\n" +
	"Clusters reach the target hub at the server of --to-context, and verify it by the CA there. If they need\n" +
	"another address, give --to-server and --to-ca-file. Without a CA, as in a context with\n" +
	"insecure-skip-tls-verify, clusters use the root certificates of their system."

// lostHelp describes a move without the source hub.
const lostHelp = "If the source hub is lost for good, give the context of the cluster itself instead of --from-context. The\n" +
	"command gives this one cluster a bootstrap kubeconfig of the target hub, approves its request alone, and\n" +
	"waits until it has registered there. It stores nothing: the same command line continues. What ManifestWorks\n" +
	"of the lost hub have applied stays with --on-evicted-works=Orphan; with Accept the cluster deletes it later.\n\n"

func moveCommand(a *frame.App) *cobra.Command {
	o := &moveOptions{App: a}
	c := &cobra.Command{
		Use:   "move {CLUSTER... | --placement=NAME} --from-context=CONTEXT --to-context=CONTEXT | CLUSTER --to-context=CONTEXT --cluster-context=CONTEXT",
		Short: "Move managed clusters between the hubs of two contexts; nothing is installed",
		Long: moveHelp + "\n\n" + lostHelp +
			"Exit codes: 0 every cluster has moved, or could in a dry run; 3 refused, or every cluster is back; 4 some\n" +
			"clusters are back; 2 error; 124 --timeout; 130 interrupted.",
		Example: "  # Checks, asks and moves\n" +
			"  " + a.Program + " cluster move cluster1 cluster2 --from-context=hub1 --to-context=hub2\n\n" +
			"  # Only checks\n" +
			"  " + a.Program + " cluster plan cluster1 cluster2 --from-context=hub1 --to-context=hub2\n\n" +
			"  # The source hub never returns\n" +
			"  " + a.Program + " cluster move cluster1 --to-context=hub2 --cluster-context=cluster1",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			o.direct = true
			if o.clusterContext != "" {
				if err := o.parseLost(c, o.hubFlags, args); err != nil {
					return err
				}
				return o.Change(c.Context(), &o.change, o.planLost)
			}
			if o.fromContext == "" || o.toContext == "" {
				return frame.Usagef("specify --from-context=CONTEXT and --to-context=CONTEXT; for a cluster whose hub is lost, --to-context=CONTEXT and --cluster-context=CONTEXT")
			}
			if err := o.parseClusters(args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	o.addPlacementTo(c)
	o.addContextsTo(a, c)
	o.addClusterContextTo(a, c)
	o.addAddressTo(c)
	o.addChoicesTo(c)
	o.timeouts.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, clusterreport.NoMigration("", ""))
	return c
}

// planLost plans to bring a cluster whose hub is lost to the target hub.
func (o *moveOptions) planLost(ctx context.Context) (frame.Change, error) {
	m, err := o.openLost(ctx, o.App, o.clusters[0])
	if err != nil {
		return nil, err
	}
	m.Output, m.Writes = o.output, o.change.Writes()
	return m.Plan(ctx)
}

// plan continues the migration of the same clusters that has not ended, or checks a new one.
func (o *moveOptions) plan(ctx context.Context) (frame.Change, error) {
	c, err := o.openDirect(ctx, o.App)
	if err != nil {
		return nil, err
	}
	all, err := c.list(ctx, c.scope.Namespace)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if known := c.pair.unfinished(all, o.selection); known != nil {
		return o.planRest(ctx, c, known)
	}
	name := o.placement
	if name == "" {
		name = o.clusters[0]
	}
	from, to := c.pair.names()
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: c.scope.Namespace, Name: nextName(name, "move", all)}}
	m.Spec = o.spec(from, to, o.timeouts)
	if err := direct.KeepAddress(m, c.pair.to.address); err != nil {
		return nil, err
	}
	return o.creation.plan(ctx, o.App, c, m)
}

// continuation is a migration to continue.
type continuation struct {
	*moveOptions
	connection *connection
	migration  migration
}

// planRest plans to continue a migration. A dry run prints it.
func (o *moveOptions) planRest(ctx context.Context, c *connection, known *api.ManagedClusterMigration) (frame.Change, error) {
	if err := c.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	if err := c.checkAddress(o.App, known); err != nil {
		return nil, err
	}
	m := migration{ManagedClusterMigration: known}
	var err error
	if m.state, err = c.state(ctx, known); err != nil {
		return nil, err
	}
	if !o.change.Writes() {
		o.Console.Printf("dry run: nothing was written; migration %s would be continued\n", m.Name)
		return nil, c.printMigration(o.App, o.output, m)
	}
	return &continuation{o, c, m}, nil
}

// Question implements frame.Change.
func (r *continuation) Question() (string, error) {
	m := r.migration
	to := r.connection.pair.to
	return fmt.Sprintf("%s\nContinue migration %s of %s from %s to %s, which clusters reach at %s?",
		clusterreport.Progress(m.report(r.connection)), m.Name, clustersOf(m.ManagedClusterMigration), r.connection.Where(), to.Where(), to.address.URL), nil
}

// Run implements frame.Change. End carries the migration out.
func (r *continuation) Run(context.Context) {}

// End implements frame.Change.
func (r *continuation) End(ctx context.Context) error {
	r.Console.Printf("migration %s continues\n", r.migration.Name)
	return r.connection.carryOut(ctx, r.App, r.output, r.migration, statusCode)
}
