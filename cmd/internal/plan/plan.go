package plan

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command is `godwit plan`.
func Command(a *frame.App) *cobra.Command {
	o := &planOptions{App: a, limit: frame.DurationFlag(defaultTimeout)}
	c := &cobra.Command{
		Use:   "plan [--contexts=NAME,... | --all-contexts]",
		Short: "Show what is left to do, in all domains; changes nothing",
		Long: "Show for each cluster what is left to do, what blocks it, and the next command:\n" +
			"  CRDs           storage versions of custom resources, as `" + a.Program + " crd plan` shows\n" +
			"  References     references to versions that a CRD does not serve, as `" + a.Program + " crd doctor` shows\n" +
			"  Revisions      objects that KubeVirt stores in ControllerRevisions\n" +
			"  ExternalNames  external names of managed resources, as `" + a.Program + " externalname audit` shows\n" +
			"  Hubs           migrations of managed clusters between hubs: those of a global hub, and on a source hub\n" +
			"                 those of `" + a.Program + " cluster move` in namespace " + direct.Namespace + "\n" +
			"  Resources      an interrupted run over built-in resources; what else is left of them no API shows\n" +
			"A domain has a row if the cluster serves its kinds. The command changes and installs nothing. For\n" +
			"CRDs with work it sends the write of a run as a dry run, as `" + a.Program + " crd plan` does, unless\n" +
			"--preflight=false. For References it reads the metadata of all objects of the cluster, unless\n" +
			"--references=false. --watch, which shows a new plan every 10 s on a terminal, does neither.\n\n" +
			"A cluster that does not answer is a row as well. The others are shown. Ctrl-C shows what was read\n" +
			"so far.\n\n" +
			"States: Clean (nothing to do), Ready (the next command does the work, or shows it), InProgress (the\n" +
			"work continues without the user), Blocked (user action required), Unknown (the objects could not be\n" +
			"read), NotChecked (a permission is missing), Unreachable (the cluster does not answer).\n" +
			"Exit codes: 0 all rows are Clean; 1 some are Ready or InProgress; 3 some are Blocked; 2 some are\n" +
			"Unknown, NotChecked or Unreachable; 130 interrupted.",
		Example: "  # This cluster\n" +
			"  " + a.Program + " plan\n\n" +
			"  # Three clusters side by side\n" +
			"  " + a.Program + " plan --contexts=canary,east,west\n\n" +
			"  # A page for a browser, of all clusters\n" +
			"  " + a.Program + " plan --all-contexts -o html --file=plan.html",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	o.contextFlags.addTo(a, c)
	flags.Var(&o.limit, "cluster-timeout", "time for each cluster")
	frame.AddReferences(c, &o.depth.references)
	frame.AddPreflight(c, &o.depth.preflight)
	frame.AddWatch(c, &o.watches)
	o.output.addTo(c, o.empty())
	return c
}

// parse checks what can be checked without a cluster.
func (o *planOptions) parse(c *cobra.Command) error {
	if err := frame.NoArguments(c, c.Flags().Args()); err != nil {
		return frame.Usage(err)
	}
	switch {
	case o.watches && (o.output.file != "" || o.output.Value != "" && o.output.Value != "wide"):
		return frame.Usagef("--watch shows a table: leave out --file, and -o except for -o wide")
	case o.watches && !frame.IsTerminal(o.Streams.Out):
		return frame.Usagef("--watch needs a terminal: stdout is none")
	}
	if err := o.contextFlags.parse(o.App, c); err != nil {
		return err
	}
	return o.output.check()
}

func (o *planOptions) run(ctx context.Context) error {
	apps := o.apps(o.App)
	if o.watches {
		return o.watch(ctx, apps)
	}
	l := o.read(ctx, apps)
	if err := o.output.deliver(o.App, l); err != nil {
		return err
	}
	if ctx.Err() != nil {
		o.Console.Printf("interrupted: rows with the reason Interrupted were not read\n")
	}
	return frame.Exit(frame.Worst(codeOf(l.Items), frame.ContextCode(ctx)))
}
