package crd

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
)

type planOptions struct {
	*frame.App
	Selection
	scan      bool
	preflight bool
	save      string // the file for values that a run would drop
	saved     *savedValues
	write     frame.WriteFlag
	output    frame.Output
}

func planCommand(a *frame.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan [NAME...] [-l SELECTOR]",
		Short: "Show which objects a run would migrate and what blocks it; changes nothing",
		Long: "Show for each CRD, by default for all CRDs, whether objects may still be stored at an old\n" +
			"version, how many objects there are, and what blocks a run, with its remedy.\n\n" +
			"The command changes nothing. It reads, and it sends the write of a run as a dry run: for one\n" +
			"object of each namespace, for at most 20 objects and at most 20 s. A denied write, or an\n" +
			"object that admission changes, blocks a run. So do values that the run would drop: the plan writes\n" +
			"the same objects through their old versions as a dry run, and all objects with --scan.\n\n" +
			"Clean CRDs are only counted, unless you name them or use -o wide. Missing permissions are\n" +
			"shown once for all CRDs, with the command that grants them.\n\n" +
			"States: Clean (nothing to do), Ready (a run migrates objects), Blocked (a run is refused),\n" +
			"Unknown (the API server did not list the objects; the reason says why).\n" +
			"Exit codes: 0 all CRDs are Clean, 1 some are Ready, 3 some are Blocked, 2 some are Unknown or\n" +
			"cannot be read.",
		Example: "  # Show what to migrate on this cluster\n" +
			"  " + a.Program + " crd plan\n\n" +
			"  # Plan one CRD, for a script\n" +
			"  " + a.Program + " crd plan httproutes.gateway.networking.k8s.io -o json\n\n" +
			"  # Plan all CRDs of one project\n" +
			"  " + a.Program + " crd plan -l app.kubernetes.io/part-of=example\n\n" +
			"  # Save the values that a run would drop, to put them back under another name\n" +
			"  " + a.Program + " crd plan widgets.example.com --save-values=values.jsonl",
		ValidArgsFunction: CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Parse(c, args, true); err != nil {
				return err
			}
			if o.save == "" {
				return o.run(c.Context())
			}
			return o.runAndSave(c.Context())
		},
	}
	o.AddTo(c)
	c.Flags().BoolVar(&o.scan, "scan", false, "read all objects: report managedFields that name versions which are not served, and each value that a run would drop")
	frame.AddPreflight(c, &o.preflight)
	c.Flags().StringVar(&o.save, "save-values", "", "new `FILE` for the values that a run would drop, a line of JSON for each object; tries all objects, as --scan does; for one CRD")
	_ = c.MarkFlagFilename("save-values")
	o.write.AddTo(c)
	o.output.AddTo(c, crdreport.PlanList(nil))
	return c
}

// runAndSave plans one CRD, and saves the values that a run would drop.
func (o *planOptions) runAndSave(ctx context.Context) (err error) {
	if len(o.Names) != 1 {
		return frame.Usagef("--save-values is for one CRD: name the CRD")
	}
	if o.saved, err = saveValues(o.save); err != nil {
		return err
	}
	o.scan = true
	err = o.run(ctx)
	if !frame.Complete(err) {
		return o.saved.close(o.Console, err)
	}
	return cmp.Or(o.saved.close(o.Console, nil), err)
}

func (o *planOptions) migratorOptions() storageversion.Options {
	options := storageversion.Options{Policy: decision.Policy{Write: o.write.Write()}, Scan: o.scan}
	if o.saved != nil {
		options.OnLoss = o.saved.add
	}
	if o.preflight {
		options.Preflight, options.CheckReadable = preflight.Run, true
	}
	return options
}

func (o *planOptions) run(ctx context.Context) error {
	s, findings, err := connectAndPlan(ctx, o.App, crdpermission.Plan, o.Selection, o.migratorOptions())
	if err != nil {
		return err
	}
	items := make([]crdreport.Plan, len(findings))
	for i, f := range findings {
		items[i] = f.item(o.Remedies())
	}
	err = frame.Write(o.Streams.Out, o.output, crdreport.PlanList(items), func(w io.Writer) error {
		plans := readable(findings, o.Remedies())
		if len(plans) == 0 && len(findings) > 0 {
			return nil // the errors name all CRDs
		}
		return crdreport.WritePlans(w, o.Style(o.Streams.Out, o.output), plans, len(o.Names) > 0)
	})
	if err != nil {
		return err
	}
	printProblems(o.App, findings)
	printLacking(ctx, o.App, s, findings)
	return frame.Exit(planCode(findings))
}

// connectAndPlan connects and observes the selected CRDs.
func connectAndPlan(ctx context.Context, a *frame.App, c permission.Command, sel Selection, o storageversion.Options) (*session, []finding, error) {
	s, err := connect(ctx, a, frame.Purpose{Command: c, Scope: sel.arguments(o.Write)}, o)
	if err != nil {
		return nil, nil, err
	}
	names, err := s.resolve(ctx, sel)
	if err != nil {
		return nil, nil, err
	}
	findings, err := s.observe(ctx, names)
	s.addLacking(ctx, findings)
	return s, findings, err
}

// readable returns the plans of CRDs that could be read. printProblems prints the errors of the
// other CRDs.
func readable(findings []finding, w remedy.Writer) []crdreport.Plan {
	var plans []crdreport.Plan
	for _, f := range findings {
		if f.problem == nil {
			plans = append(plans, f.item(w))
		}
	}
	return plans
}

func printProblems(a *frame.App, findings []finding) {
	for _, f := range findings {
		if f.problem != nil {
			a.Console.Problem(f.problem)
		}
	}
}

func planCode(findings []finding) frame.Code {
	code := frame.OK
	for _, f := range findings {
		switch {
		case f.problem != nil:
			code = frame.Worst(code, frame.Error)
		case f.plan.State == decision.StateUnknown:
			code = frame.Worst(code, frame.Error)
		case f.plan.State == decision.Blocked:
			code = frame.Worst(code, frame.Refused)
		case f.plan.State == decision.Ready:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
