package revision

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/walk"
)

type runOptions struct {
	*frame.App
	selection
	policyFlags
	yes         bool
	dryRun      frame.Choice
	retention   retentionFlag
	retain      bool
	wait        bool
	timeout     frame.DurationFlag
	maxInFlight frame.CountFlag
	maxWrites   frame.RateFlag
	output      frame.Output
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{App: a, maxInFlight: walk.DefaultMaxInFlight}
	c := &cobra.Command{
		Use:   "run {-n NAMESPACE | -A} [-l SELECTOR]",
		Short: "Replace old revisions by revisions at the target version",
		Long: "For each old revision, create a new revision at the target version, repoint all\n" +
			"references to it, and delete the old one after the retention. At any time, each reference\n" +
			"names a revision that KubeVirt can read.\n\n" +
			"The retention is longer than the command takes. Run the command again after the time that\n" +
			"it prints, or use --wait. Until then `" + a.Program + " revision rollback` repoints to the old\n" +
			"revisions. Run the same command to resume an interrupted run.\n\n" +
			"The output has a row for each revision that was not upgraded, and counts of all. -o wide\n" +
			"prints all rows.\n\n" +
			"The API server does no dry run: it would refuse references to revisions that a dry run\n" +
			"does not store.\n\n" +
			"Exit codes: 0 nothing left to do; 1 revisions are retained, deferred or in use, or a dry\n" +
			"run found work; 3 blocked or refused, and nothing written; 4 some revisions are blocked\n" +
			"or failed, or the scan is incomplete; 2 error; 124 --timeout; 130 interrupted.",
		Example: "  # One namespace; asks before it writes\n  " + a.Program + " revision run -n shop\n\n" +
			"  # The whole cluster, in a script, with the deletion of the old revisions\n  " + a.Program + " revision run -A --yes --retention=10m --wait -o json\n\n" +
			"  # Show what a run would write\n  " + a.Program + " revision run -A --dry-run=client -o wide",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false // targets first, then what changes, then pace
	o.selection.addTo(c)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	frame.AddClientDryRun(c, &o.dryRun)
	o.policyFlags.addTo(c)
	o.retention.addTo(c, "an old revision")
	flags.BoolVar(&o.retain, "retain", false, "keep old revisions without a limit")
	flags.BoolVar(&o.wait, "wait", false, "wait for the end of the retention, and delete the old revisions")
	flags.Var(&o.timeout, "timeout", "end the run after this time; the same command resumes it (default: no limit)")
	flags.Var(&o.maxInFlight, "max-in-flight", "how many requests may be in flight; Godwit sends fewer while the API server is overloaded")
	flags.Var(&o.maxWrites, "max-writes-per-second", "maximum number of writes per second (default: no limit)")
	o.output.AddTo(c, revisionreport.NewRunReport(nil))
}

func (o *runOptions) parse(a *frame.App, c *cobra.Command) error {
	switch err := o.selection.parse(a, c); {
	case err != nil:
		return err
	case o.namespace == "" && !o.everywhere:
		return frame.Usagef("which revisions? give --namespace or --all-namespaces; `%s plan` shows what there is", c.Parent().CommandPath())
	case o.retain && o.wait:
		return frame.Usagef("--retain keeps old revisions without a limit: there is nothing to --wait for")
	case o.retain && c.Flags().Changed("retention"):
		return frame.Usagef("choose --retain or --retention, one of them")
	}
	return nil
}

// options are those of the library, which reports progress to steps.
func (o *runOptions) options(steps *steps) revision.Options {
	policy := o.policy()
	policy.Retention, policy.Retain = o.retention.duration(), o.retain
	return revision.Options{
		Policy:   policy,
		Limiter:  walk.NewLimiter(walk.Limits{MaxInFlight: int(o.maxInFlight), MaxWritesPerSecond: float64(o.maxWrites)}),
		Progress: steps.moved,
	}
}

func (o *runOptions) run(ctx context.Context) error {
	changes := o.dryRun.Value == frame.DryRunNone
	if changes && !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("run")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	began := time.Now()
	steps := &steps{console: o.Console}
	command := revisionpermission.Run
	if !changes {
		command = revisionpermission.Plan
	}
	s, err := connect(ctx, o.App, command, &o.selection, o.options(steps))
	if err != nil {
		return err
	}
	p := &pass{session: s, remedies: o.Remedies()}
	var items []revision.Item // for the confirmation, or for a dry run
	p.inventory, err = s.scanEach(ctx, func(i revision.Item) {
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
			return frame.Refuse(err)
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

// sayDryRun prints what a run would do.
func (o *runOptions) sayDryRun(p *pass, items []revision.Item) error {
	p.tally()
	r := p.report()
	err := frame.WriteDocument(o.Streams.Out, o.output, r, r.Items.Names(), func(w io.Writer) error {
		return revisionreport.WritePlan(w, o.Style(o.Streams.Out, o.output), revisionreport.NewPlanList(items, nil, o.Remedies()))
	})
	if err != nil {
		return err
	}
	return frame.Exit(planCode(items, nil))
}

// waitOut waits until no revision is retained.
func (o *runOptions) waitOut(ctx context.Context, p *pass) {
	for p.err == nil {
		n, until := p.kept(revision.Retained)
		if n == 0 {
			return
		}
		o.Console.Printf("%s retained until %s: waiting, to delete them then; after an interrupt the same command resumes\n",
			render.Count(n, "old revision is", "old revisions are"), clockTime(until, o.Clock.Now()))
		if p.err = walk.Wait(ctx, max(time.Until(until), time.Minute)); p.err == nil {
			p.run(ctx)
		}
	}
}
