package revision

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/walk"
)

type runOptions struct {
	*cli.App
	selection
	policyFlags
	yes         bool
	dryRun      cli.Choice
	retention   retentionFlag
	retain      bool
	wait        bool
	timeout     cli.DurationFlag
	maxInFlight cli.CountFlag
	maxRate     cli.RateFlag
	output      cli.Output
}

func runCommand(a *cli.App) *cobra.Command {
	o := &runOptions{App: a, maxInFlight: walk.DefaultMaxInFlight}
	c := &cobra.Command{
		Use:   "run {-n NAMESPACE | -A} [-l SELECTOR]",
		Short: "Have revisions at the current version take the place of old ones",
		Long: "Make of each old revision one at the target version, lead everybody who refers to the\n" +
			"old one to it, and remove the old one when nobody has referred to it for the retention.\n" +
			"At any moment each reference leads to a revision that can be read.\n\n" +
			"The retention outlasts the command: run it again after the time that it names, or let\n" +
			"it --wait. Until then `" + a.Program + " revision rollback` goes back. An interrupted run is gone\n" +
			"on with in the same way.\n\n" +
			"It prints a row for each revision that was not upgraded, and counts of all; -o wide\n" +
			"prints all rows.\n\n" +
			"There is no dry run by the server: it would refuse references to revisions that it did\n" +
			"not store.\n\n" +
			"Exit codes: 0 nothing is left to do, 1 something is pending (retained, deferred or in use,\n" +
			"or a dry run found work), 3 blocked or refused and nothing written, 4 some revisions\n" +
			"were blocked or failed, 2 error, 124 --timeout, 130 interrupted.",
		Example: "  # One namespace; asks before it writes\n  " + a.Program + " revision run -n shop\n\n" +
			"  # Everything, in a script, and the old revisions as well\n  " + a.Program + " revision run -A --yes --retention=10m --wait -o json\n\n" +
			"  # What would be written?\n  " + a.Program + " revision run -A --dry-run=client -o wide",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(a, c)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, revisionreport.NewRunReport(nil), err)
		},
	}
	cli.ListOnFlagError(a, c, revisionreport.NewRunReport(nil))
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false // targets first, then what changes, then pace
	o.selection.addTo(c)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.dryRun = cli.Choice{Value: cli.DryRunNone, Allowed: []string{cli.DryRunNone, cli.DryRunClient}, Kind: "string"}
	o.dryRun.AddTo(c, "dry-run", "", "none; client: say what there is to do, and write nothing")
	o.policyFlags.addTo(c)
	o.retention.addTo(c, "an old revision")
	flags.BoolVar(&o.retain, "retain", false, "keep old revisions for good")
	flags.BoolVar(&o.wait, "wait", false, "wait for the end of the retention, and remove the old revisions then")
	flags.Var(&o.timeout, "timeout", "end the run after this time; the same command goes on with it (default: no limit)")
	flags.Var(&o.maxInFlight, "max-in-flight", "how many requests may be under way at once; fewer are while the server shows strain")
	flags.Var(&o.maxRate, "max-rate", "how many writes may start per second (default: no limit)")
	o.output.AddTo(c)
}

func (o *runOptions) parse(a *cli.App, c *cobra.Command) error {
	switch err := o.selection.parse(a, c); {
	case err != nil:
		return err
	case o.namespace == "" && !o.everywhere:
		return cli.Usagef("which revisions? give --namespace or --all-namespaces; `%s plan` shows what there is", c.Parent().CommandPath())
	case o.retain && o.wait:
		return cli.Usagef("--retain keeps old revisions for good: there is nothing to --wait for")
	case o.retain && c.Flags().Changed("retention"):
		return cli.Usagef("choose --retain or --retention, one of them")
	}
	return nil
}

// options of the library: steps is told of progress.
func (o *runOptions) options(steps *steps) revision.Options {
	policy := o.policy()
	policy.Retention, policy.Retain = o.retention.duration(), o.retain
	return revision.Options{
		Policy:   policy,
		Limiter:  walk.NewLimiter(walk.Limits{MaxInFlight: int(o.maxInFlight), MaxWritesPerSecond: float64(o.maxRate)}),
		Progress: steps.moved,
	}
}

func (o *runOptions) run(ctx context.Context) error {
	changes := o.dryRun.Value == cli.DryRunNone
	if changes && !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("run")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	began := time.Now()
	steps := &steps{console: o.Console}
	command := permission.RevisionRun
	if !changes {
		command = permission.RevisionPlan
	}
	s, err := connect(ctx, o.App, command, &o.selection, o.options(steps))
	if err != nil {
		return err
	}
	p := &pass{session: s, flags: o.ClusterFlags()}
	var items []revision.Item // for a question, or in place of a run
	p.survey, err = s.lookEach(ctx, func(i revision.Item) {
		p.plan(i)
		if !o.yes || !changes {
			items = append(items, i)
		}
	})
	if err != nil {
		return err
	}
	if !changes {
		return o.sayDryRun(p, items)
	}
	if len(p.todo) > 0 {
		if err := s.missing(ctx, p.todo[0]); err != nil {
			return cli.Refuse(err)
		}
		if !o.yes {
			if err := ask(ctx, o.App, s, items); err != nil {
				return err
			}
		}
	}
	items = nil
	said := o.SayEnding(ctx)
	steps.begin("advancing", p.begins)
	p.run(ctx)
	steps.end()
	if o.wait {
		o.waitOut(ctx, p)
	}
	said()
	return end(ctx, o.App, o.output, p, began)
}

// sayDryRun prints what a run would report, of which nothing has happened.
func (o *runOptions) sayDryRun(p *pass, items []revision.Item) error {
	p.tally()
	r := p.report()
	err := cli.WriteDocument(o.Streams.Out, o.output, r, report.NamesOf(r.Items), func(w io.Writer) error {
		return revisionreport.WritePlan(w, o.Style(o.Streams.Out, o.output), revisionreport.NewPlanList(items, nil, o.ClusterFlags()))
	})
	if err != nil {
		return err
	}
	return cli.Exit(planCode(items, nil))
}

// waitOut waits until nothing is retained any more.
func (o *runOptions) waitOut(ctx context.Context, p *pass) {
	for p.err == nil {
		n, until := p.kept(revision.Retained)
		if n == 0 {
			return
		}
		o.Console.Printf("%s retained until %s: waiting, and removing them then; the same command goes on with it if it is interrupted\n",
			report.Count(n, "old revision is", "old revisions are"), clockTime(until, o.Clock.Now()))
		if p.err = walk.Wait(ctx, max(time.Until(until), time.Minute)); p.err == nil {
			p.run(ctx)
		}
	}
}

// clockTime names the day if it is another one.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 MST")
	}
	return t.Format("2006-01-02 15:04:05 MST")
}
