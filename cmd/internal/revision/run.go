package revision

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/walk"
)

type runOptions struct {
	*frame.App
	selection
	policyFlags
	change    frame.ChangeFlags
	retention retentionFlag
	retain    bool
	wait      bool
	limits    frame.LimitFlags
	output    frame.Output
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{App: a}
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
			"--dry-run=server also sends each object that a run would repoint to the API server, as it\n" +
			"is: what admission refuses then, such as a virtual machine that is not valid any more, it\n" +
			"would refuse of the run, too. A dry run can't try a new name, since it stores no revision.\n\n" +
			"Exit codes: 0 nothing left to do; 1 revisions are retained, deferred or in use, or a dry\n" +
			"run found work; 3 blocked or refused, and nothing written; 4 some revisions are blocked\n" +
			"or failed, or the scan is incomplete; 2 error; 124 --timeout; 130 interrupted.",
		Example: "  # One namespace; asks before it writes\n  " + a.Program + " revision run -n shop\n\n" +
			"  # The whole cluster, in a script, with the deletion of the old revisions\n  " + a.Program + " revision run -A --yes --retention=10m --wait -o json\n\n" +
			"  # Show what a run would write\n  " + a.Program + " revision run -A --dry-run=client -o wide\n\n" +
			"  # Show also which virtual machines admission would refuse\n  " + a.Program + " revision run -A --dry-run=server",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.selection.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient, frame.DryRunServer)
	o.policyFlags.addTo(c)
	o.retention.addTo(c)
	flags.BoolVar(&o.retain, "retain", false, "keep old revisions without a limit")
	flags.BoolVar(&o.wait, "wait", false, "wait for the end of the retention, and delete the old revisions")
	o.change.AddTimeoutTo(c)
	o.limits.AddRequestsTo(flags)
	o.output.AddTo(c, revisionreport.NewRunReport(nil))
}

func (o *runOptions) parse(a *frame.App, c *cobra.Command) error {
	switch err := o.selection.parse(a, c); {
	case err != nil:
		return err
	case o.namespace == "" && !o.everywhere:
		return frame.Usagef("specify --namespace or --all-namespaces; `%s plan` lists the revisions", c.Parent().CommandPath())
	case o.retain && o.wait:
		return frame.Usagef("--retain and --wait are mutually exclusive: --retain keeps old revisions without a limit")
	case o.retain && c.Flags().Changed("retention"):
		return frame.Usagef("--retain and --retention are mutually exclusive")
	}
	return nil
}

// options returns the options of the library, which reports progress to steps.
func (o *runOptions) options(steps *steps) revision.Options {
	policy := o.policy()
	policy.Retention, policy.Retain = o.retention.duration(), o.retain
	return revision.Options{
		Policy:   policy,
		Limiter:  o.limits.Limiter(),
		Progress: steps.update,
	}
}

// run is a planned run.
type run struct {
	*runOptions
	*pass
	steps *steps
	items []decision.Item // for the confirmation, or for a dry run
	began time.Time
}

// plan scans the revisions. It prints the plan of a dry run.
func (o *runOptions) plan(ctx context.Context) (frame.Change, error) {
	r := &run{runOptions: o, steps: &steps{console: o.Console}, began: time.Now()}
	command := revisionpermission.Run
	if o.change.DryRun() == frame.DryRunClient {
		command = revisionpermission.Plan
	}
	s, err := connect(ctx, o.App, command, &o.selection, o.options(r.steps))
	if err != nil {
		return nil, err
	}
	r.pass = &pass{session: s, remedies: o.Remedies()}
	each := func(i decision.Item) {
		r.pass.plan(i)
		if o.change.Asks() || !o.change.Writes() {
			r.items = append(r.items, i)
		}
	}
	if o.change.DryRun() == frame.DryRunServer {
		err = s.tryEach(ctx, each)
	} else {
		r.inventory, err = s.scanEach(ctx, each)
	}
	if err != nil {
		return nil, err
	}
	if !o.change.Writes() {
		return nil, o.printDryRun(r.pass, r.items)
	}
	if len(r.todo) > 0 {
		if err := s.missing(ctx, r.todo[0]); err != nil {
			return nil, frame.Refuse(err)
		}
	}
	return r, nil
}

// Question implements frame.Change.
func (r *run) Question() (string, error) {
	if len(r.todo) == 0 {
		return "", nil
	}
	list := revisionreport.NewPlanList(r.items, nil, r.remedies)
	r.items = nil // a cluster has tens of thousands
	return fmt.Sprintf("\nUpgrade them on %s?", r.session.Where()), revisionreport.WritePlan(r.Console, r.Style(r.Streams.ErrOut, frame.Output{}), list)
}

// Run implements frame.Change.
func (r *run) Run(ctx context.Context) {
	r.steps.begin("advancing", r.begins)
	r.pass.run(ctx)
	r.steps.end()
	if r.wait {
		r.awaitRetention(ctx, r.pass)
	}
}

// End implements frame.Change.
func (r *run) End(ctx context.Context) error {
	return end(ctx, r.App, r.output, r.pass, r.began)
}

// printDryRun prints what a run would do.
func (o *runOptions) printDryRun(p *pass, items []decision.Item) error {
	p.tally()
	r := p.report()
	err := frame.WriteDocument(o.Streams.Out, o.output, r, r.Items.Names(), func(w io.Writer) error {
		return revisionreport.WritePlan(w, o.Style(o.Streams.Out, o.output), revisionreport.NewPlanList(items, nil, o.Remedies()))
	})
	if err != nil {
		return err
	}
	printAtRisk(o.App, &o.selection, items)
	return frame.Exit(planCode(items, nil))
}

// awaitRetention waits until no revision is retained.
func (o *runOptions) awaitRetention(ctx context.Context, p *pass) {
	for p.err == nil {
		n, until := p.retainedRevisions(revision.Retained)
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
