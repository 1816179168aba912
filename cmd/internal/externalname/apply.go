package externalname

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/walk"
)

type applyOptions struct {
	planOptions
	yes          bool
	dryRun       frame.Choice
	canaries     frame.CountFlag
	batch        frame.CountFlag
	pauseTimeout frame.DurationFlag
	proofTimeout frame.DurationFlag
	timeout      frame.DurationFlag
	maxInFlight  frame.CountFlag
	maxWrites    frame.RateFlag
}

// Defaults of flags, as in package fleet.
const (
	defaultCanaries     = 1
	defaultBatch        = 50
	defaultPauseTimeout = 2 * time.Minute
	defaultProofTimeout = 5 * time.Minute
)

func applyCommand(a *frame.App) *cobra.Command {
	o := &applyOptions{
		planOptions: planOptions{App: a}, canaries: defaultCanaries, batch: defaultBatch,
		pauseTimeout: frame.DurationFlag(defaultPauseTimeout), proofTimeout: frame.DurationFlag(defaultProofTimeout), maxInFlight: walk.DefaultMaxInFlight,
	}
	c := &cobra.Command{
		Use:   "apply --resource=CRD --name=CEL {-n NAMESPACE | -A} [-l SELECTOR]",
		Short: "Rename managed resources, with a proof that each still has the same external resource",
		Long: "Rename the managed resources for which a plan says Rename or Resume. For each one: pause it, wait\n" +
			"until the provider reports the pause, write the new name and end the pause in one patch, wait until\n" +
			"the provider reports success, and compare status.atProvider with that from before. A name that is\n" +
			"not proven is undone at once.\n\n" + nameHelp +
			"The command renames the canaries first, and then batches. It stops after a bad canary, and after a\n" +
			"batch with a bad managed resource. `" + a.Program + " externalname rollback` restores the old names, as\n" +
			"long as the annotation godwit.dev/renaming exists. Run the same command to resume an interrupted\n" +
			"run.\n\n" +
			"Until the proof, the provider acts on the resource that the new name identifies. If you don't trust\n" +
			"the expression, set spec.managementPolicies of a canary to Observe before.\n\n" +
			"Exit codes: 0 all are renamed or nothing to do; 1 some are deferred, skipped or left to another client, or a\n" +
			"dry run found work; 3 refused or undone, and nothing renamed; 4 some are undone or failed; 2 error;\n" +
			"124 --timeout; 130 interrupted.",
		Example: "  # One namespace; asks before it writes\n" +
			"  " + a.Program + " externalname apply --resource=members.example.org --name='name.lowerAscii()' -n shop\n\n" +
			"  # Everything, in a script, compared by one field\n" +
			"  " + a.Program + " externalname apply --resource=members.example.org --name='name.lowerAscii()' -A --identity=id --yes -o json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.addFlags(a, c)
	return c
}

func (o *applyOptions) addFlags(a *frame.App, c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	o.selection.addTo(a, c)
	o.nameFlags.addTo(c)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	frame.AddClientDryRun(c, &o.dryRun)
	o.identityFlags.addTo(c)
	flags.Var(&o.canaries, "canaries", "how many managed resources to rename before all others")
	flags.Var(&o.batch, "batch", "how many managed resources may be paused at the same time")
	flags.Var(&o.pauseTimeout, "pause-timeout", "how long the provider may take to report a pause")
	flags.Var(&o.proofTimeout, "proof-timeout", "how long the provider may take to report success under the new name")
	flags.Var(&o.timeout, "timeout", "end the run after this time; the same command resumes it (default: no limit)")
	flags.Var(&o.maxInFlight, "max-in-flight", "how many requests may be in flight; Godwit sends fewer while the API server is overloaded")
	flags.Var(&o.maxWrites, "max-writes-per-second", "how many writes may start per second (default: no limit)")
	o.output.AddTo(c, externalnamereport.RunList(fleet.Kind{}, nil, remedy.Writer{}))
}

func (o *applyOptions) run(ctx context.Context) error {
	naming, err := o.naming()
	if err != nil {
		return err
	}
	if err := o.checkNamespaces(); err != nil {
		return err
	}
	changes := o.dryRun.Value == frame.DryRunNone
	if changes && !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("apply")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	progress := &progress{console: o.Console, what: "renaming"}
	options := o.options(&o.selection)
	options.Canaries, options.Batch, options.Progress = int(o.canaries), int(o.batch), progress.moved
	options.PauseTimeout, options.ProofTimeout = time.Duration(o.pauseTimeout), time.Duration(o.proofTimeout)
	options.Limiter = walk.NewLimiter(walk.Limits{MaxInFlight: int(o.maxInFlight), MaxWritesPerSecond: float64(o.maxWrites)})
	command := externalnamepermission.Apply
	if !changes {
		command = externalnamepermission.Plan
	}
	s, err := connect(ctx, o.App, command, &o.selection, options)
	if err != nil {
		return err
	}
	items, err := s.plan(ctx, naming)
	if err != nil {
		return err
	}
	if !changes {
		if err := o.printPlan(s, items, o.output); err != nil {
			return err
		}
		return frame.Exit(planCode(items))
	}
	return o.apply(ctx, s, items, progress)
}

// apply asks, and carries the plan out.
func (o *applyOptions) apply(ctx context.Context, s *session, items []fleet.Item, progress *progress) error {
	todo := 0
	var skipped []fleet.Result
	for _, i := range items {
		switch i.Action {
		case fleet.Rename, fleet.Resume:
			todo++
		case fleet.Skip:
			skipped = append(skipped, fleet.Result{Item: i, Phase: fleet.PhaseSkipped})
		case fleet.None:
		}
	}
	if todo > 0 {
		if err := s.missing(ctx); err != nil {
			return frame.Refuse(err)
		}
		if !o.yes {
			if err := o.ask(ctx, s, items, todo); err != nil {
				return err
			}
		}
	}
	said := o.SayEnding(ctx)
	progress.begin(todo)
	r, err := s.Apply(ctx, items)
	progress.end()
	said()
	r.Results = append(r.Results, skipped...)
	return endRun(ctx, o.App, ending{session: s, output: o.output, report: r, err: err, rollback: true})
}

func (o *applyOptions) ask(ctx context.Context, s *session, items []fleet.Item, todo int) error {
	list := externalnamereport.PlanList(s.kind, items, s.remedies)
	if err := externalnamereport.WritePlan(o.Console, o.Style(o.Streams.ErrOut, frame.Output{}), list.Items); err != nil {
		return err
	}
	o.Console.Printf("\nRename %s on %s? [y/N] ", render.Count(int64(todo), "managed resource", "managed resources"), s.Where())
	return o.Confirm(ctx)
}
