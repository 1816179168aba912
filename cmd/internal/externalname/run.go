package externalname

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

type runOptions struct {
	planOptions
	timeoutFlags
	change   frame.ChangeFlags
	canaries frame.CountFlag
	batch    frame.CountFlag
	limits   frame.LimitFlags
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{planOptions: planOptions{App: a}, canaries: fleet.DefaultCanaries, batch: fleet.DefaultBatch}
	c := &cobra.Command{
		Use:     "run --resource=CRD --name=CEL {-n NAMESPACE | -A} [-l SELECTOR]",
		Aliases: []string{"apply"},
		Short:   "Rename managed resources, with a proof that each still has the same external resource",
		Long: "Rename the managed resources for which a plan says Rename or Resume. For each one: pause it, and wait\n" +
			"until the provider reports the pause. Write the new name and spec.managementPolicies [Observe], and end\n" +
			"the pause, in one patch: the provider can create, change and delete nothing. Wait until it reports\n" +
			"success, and compare the fields of status.atProvider that the spec lacks with those from before. Then\n" +
			"give the management policies back. A name that is not proven is undone at once.\n\n" + nameHelp +
			"The command renames the canaries first, and then batches. It stops after a bad canary, and after a\n" +
			"batch with a bad managed resource. `" + a.Program + " externalname rollback` restores the old names, as\n" +
			"long as the annotation godwit.dev/renaming exists. Run the same command to resume an interrupted\n" +
			"run.\n\n" +
			"A kind without spec.managementPolicies needs --accept-unsafe: its provider creates a second external\n" +
			"resource if it finds none under the new name. The run then stops, restores the old name, and names\n" +
			"both.\n\n" +
			"Exit codes: 0 all are renamed or nothing to do; 1 some are deferred, skipped or left to another client, or a\n" +
			"dry run found work; 3 refused or undone, and nothing renamed; 4 some are undone or failed; 2 error;\n" +
			"124 --timeout; 130 interrupted.",
		Example: "  # One namespace; asks before it writes\n" +
			"  " + a.Program + " externalname run --resource=members.example.org --name='name.lowerAscii()' -n shop\n\n" +
			"  # Everything, in a script, compared by one field\n" +
			"  " + a.Program + " externalname run --resource=members.example.org --name='name.lowerAscii()' -A --identity=id --yes -o json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parseToWrite(a, c); err != nil {
				return err
			}
			naming, err := o.naming()
			if err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, naming) })
		},
	}
	o.addFlags(a, c)
	return c
}

func (o *runOptions) addFlags(a *frame.App, c *cobra.Command) {
	flags := c.Flags()
	o.selection.addTo(a, c)
	o.nameFlags.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient)
	o.identityFlags.addTo(c)
	flags.Var(&o.canaries, "canaries", "how many managed resources to rename before all others")
	flags.Var(&o.batch, "batch", "how many managed resources may be paused at the same time")
	o.timeoutFlags.addTo(c)
	o.change.AddTimeoutTo(c)
	o.limits.AddRequestsTo(flags)
	o.output.AddTo(c, externalnamereport.RunList(fleet.Kind{}, nil, remedy.Writer{}))
}

// apply is a planned renaming.
type apply struct {
	*runOptions
	session  *session
	items    []fleet.Item
	todo     int
	progress *progress
	report   fleet.Report
	err      error
}

// plan plans the names. It prints the plan of a dry run.
func (o *runOptions) plan(ctx context.Context, naming fleet.Naming) (frame.Change, error) {
	p := &apply{runOptions: o, progress: &progress{console: o.Console, what: "renaming"}}
	options := o.options(&o.selection)
	options.Canaries, options.Batch, options.Progress = int(o.canaries), int(o.batch), p.progress.update
	options.PauseTimeout, options.ProofTimeout = time.Duration(o.pause), time.Duration(o.proof)
	options.Limiter = o.limits.Limiter()
	command := externalnamepermission.Apply
	if !o.change.Writes() {
		command = externalnamepermission.Plan
	}
	var err error
	if p.session, err = connect(ctx, o.App, command, &o.selection, options); err != nil {
		return nil, err
	}
	if p.items, err = p.session.plan(ctx, naming); err != nil {
		return nil, err
	}
	if !o.change.Writes() {
		if err := o.printPlan(p.session, p.items, o.output); err != nil {
			return nil, err
		}
		return nil, frame.Exit(planCode(p.items))
	}
	for _, i := range p.items {
		if i.Action == fleet.Rename || i.Action == fleet.Resume {
			p.todo++
		}
	}
	if p.todo > 0 {
		if err := p.session.missing(ctx); err != nil {
			return nil, frame.Refuse(err)
		}
	}
	return p, nil
}

// Question implements frame.Change.
func (p *apply) Question() (string, error) {
	if p.todo == 0 {
		return "", nil
	}
	list := externalnamereport.PlanList(p.session.kind, p.items, p.session.remedies)
	return fmt.Sprintf("\nRename %s on %s?", render.Count(int64(p.todo), "managed resource", "managed resources"), p.session.Where()),
		externalnamereport.WritePlan(p.Console, p.Style(p.Streams.ErrOut, frame.Output{}), list.Items)
}

// Run implements frame.Change.
func (p *apply) Run(ctx context.Context) {
	p.progress.begin(p.todo)
	p.report, p.err = p.session.Apply(ctx, p.items)
	p.progress.end()
}

// End implements frame.Change.
func (p *apply) End(ctx context.Context) error {
	for _, i := range p.items {
		if i.Action == fleet.Skip {
			p.report.Results = append(p.report.Results, fleet.Result{Item: i, Phase: fleet.PhaseSkipped})
		}
	}
	return endRun(ctx, p.App, ending{session: p.session, output: p.output, report: p.report, err: p.err, rollback: true, selector: p.selectorFlag()})
}
