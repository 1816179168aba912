package cluster

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

type statusOptions struct {
	*frame.App
	hubFlags
	everywhere bool
	watch      bool
	timeout    frame.DurationFlag
	output     frame.Output
}

func statusCommand(a *frame.App) *cobra.Command {
	o := &statusOptions{App: a}
	c := &cobra.Command{
		Use:   "status [NAME] [-n NAMESPACE | -A] [--watch]",
		Short: "Show how far a migration is, and where each of its clusters is; changes nothing",
		Long: "Show the phase of a migration, and of each cluster its state, the hub where it is registered, and why\n" +
			"it was not moved. The hub is empty while it is not proven by two renewals of the cluster's lease.\n" +
			"Without a name, list the migrations. This command only reads.\n\n" +
			"States: Selected, Registered (at the target hub), Moved (and nothing is left at the source hub),\n" +
			"Returning, Returned (at the source hub), Restored (and nothing is left at the target hub), Gone (a user\n" +
			"has deleted its ManagedCluster), Forgotten (the migration ends without it). STEP is the action that the\n" +
			"cluster waits for, by itself, from phase Registering on.\n\n" +
			"Exit codes: 0 every cluster has moved; 1 the migration is not finished; 3 it failed and every cluster\n" +
			"is back; 4 some clusters have moved and the others are back; 2 error; 124 --timeout; 130\n" +
			"interrupted. A list has exit code 0.",
		Example: "  # All migrations\n" +
			"  " + a.Program + " cluster status -A\n\n" +
			"  # Until it has ended\n" +
			"  " + a.Program + " cluster status east --watch",
		ValidArgsFunction: completeMigrations(a),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.output.Empty = clusterreport.NoMigration("", args[0])
			}
			if err := o.parse(args); err != nil {
				return err
			}
			return o.run(c.Context(), args)
		},
	}
	frame.AddAllNamespaces(c, &o.everywhere)
	frame.AddWatch(c, &o.watch)
	frame.AddTimeout(c, &o.timeout)
	addManagerNamespace(c, &o.managerNamespace)
	addFromContext(a, c, &o.fromContext)
	o.output.AddTo(c, clusterreport.MigrationList(nil))
	return c
}

func (o *statusOptions) parse(args []string) error {
	switch {
	case len(args) > 1:
		return frame.Usagef("specify one migration or none, but got %q", args)
	case len(args) == 1 && o.everywhere:
		return frame.Usagef("NAME and --all-namespaces are mutually exclusive")
	case o.fromContext != "" && o.everywhere:
		return frame.Usagef("--from-context and --all-namespaces are mutually exclusive: the migrations of `cluster move` are in namespace %s, or that of --namespace", direct.Namespace)
	case len(args) == 0 && o.watch:
		return frame.Usagef("--watch needs the name of a migration")
	}
	o.direct = o.fromContext != ""
	return nil
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	if len(args) == 0 {
		return o.list(ctx)
	}
	c, m, err := o.openMigration(ctx, o.App, clusterpermission.Preflight, args[0])
	if err != nil {
		return err
	}
	if o.watch {
		return c.followToEnd(ctx, o.App, o.output, m, statusCode)
	}
	if err := errors.Join(c.printMigration(o.App, o.output, m), c.printHolder(ctx, o.App, m)); err != nil {
		return err
	}
	return frame.Exit(statusCode(m.report(c)))
}

// connect connects for a list.
func (o *statusOptions) connect(ctx context.Context) (*connection, error) {
	if o.everywhere {
		return dialGlobal(ctx, o.App, clusterpermission.Preflight, permission.Scope{Installation: o.managerNamespace})
	}
	return o.open(ctx, o.App, clusterpermission.Preflight)
}

func (o *statusOptions) list(ctx context.Context) error {
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	all, err := c.list(ctx, c.scope.Namespace)
	if err != nil {
		return c.explain(ctx, err)
	}
	items := make([]clusterreport.Migration, len(all))
	for i := range all {
		if items[i], err = c.row(ctx, &all[i]); err != nil {
			return err
		}
	}
	return frame.Print(o.App, o.output, clusterreport.MigrationList(items), clusterreport.WriteMigrations)
}

// row returns the document of a migration in a list. One that can't be read has the cause in it, and the others are listed.
func (c *connection) row(ctx context.Context, m *api.ManagedClusterMigration) (clusterreport.Migration, error) {
	state, err := manager.ReadState(ctx, c.client, m)
	if err == nil {
		return migration{m, state}.report(c), nil
	}
	reason := manager.WhyUnreadable(err)
	if reason == nil {
		return clusterreport.Migration{}, c.explain(ctx, err)
	}
	d := clusterreport.SummaryOf(m, c.clock.Now())
	if m.Annotations[manager.AnnotationUnreadable] == "" { // otherwise its condition says why
		d.Cause = render.Cause{Reason: reason.Name, Message: err.Error()}
	}
	return d, nil
}
