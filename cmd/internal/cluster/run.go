package cluster

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type runOptions struct {
	*frame.App
	selection
	creation
	timeouts
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{App: a}
	c := &cobra.Command{
		Use:     "run NAME --from=HUB --to=HUB {CLUSTER... | --placement=NAME} [--watch]",
		Aliases: []string{"start"},
		Short:   "Move managed clusters from a hub to another one",
		Long: "Create the ManagedClusterMigration NAME, which moves managed clusters from a hub to another one. The\n" +
			"command does the preflight first, refuses what is blocked, and asks.\n\n" +
			"`" + a.Program + " manager` carries the migration out: it continues when this command has ended. The\n" +
			"clusters that the target hub does not register return to the source hub.\n\n" +
			"Exit codes: 0 the migration is created, or valid in a dry run, or with --watch every cluster has moved;\n" +
			"3 refused, or with --watch every cluster is back; 4 with --watch some clusters are back; 2 error; 124\n" +
			"--timeout; 130 interrupted.",
		Example: "  # Asks before it writes\n" +
			"  " + a.Program + " cluster run east --from=hub1 --to=hub2 cluster1 cluster2 --from-context=hub1 --to-context=hub2 --watch\n\n" +
			"  # In a script\n" +
			"  " + a.Program + " cluster run east --from=hub1 --to=hub2 --placement=east --from-context=hub1 --yes --watch -o json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, args[0]) })
		},
	}
	o.selection.addTo(a, c)
	o.timeouts.addTo(c)
	o.creation.addTo(a, c)
	return c
}

func (o *runOptions) parse(args []string) error {
	if len(args) == 0 {
		return frame.Usagef("specify the name of the migration, and then the clusters")
	}
	if err := checkName(args[0]); err != nil {
		return err
	}
	return o.selection.parse(args[1:])
}

func (o *runOptions) plan(ctx context.Context, name string) (frame.Change, error) {
	c, err := o.open(ctx, o.App, clusterpermission.Run)
	if err != nil {
		return nil, err
	}
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: c.scope.Namespace, Name: name}}
	m.Spec = o.spec(o.from, o.to, o.timeouts)
	return o.creation.plan(ctx, o.App, c, m)
}
