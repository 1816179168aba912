package crd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/crdmigrator/preflight"
)

type planOptions struct {
	*cli.App
	Selection
	scan      bool
	preflight bool
	write     WriteFlag
	output    cli.Output
}

func planCommand(a *cli.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan [NAME...] [-l SELECTOR]",
		Short: "Show what there is to migrate, and what is in the way; changes nothing",
		Long: "Show for each CustomResourceDefinition, all of them by default, whether objects may\n" +
			"still be stored at an old version, how many objects there are, and what would keep\n" +
			"a run from starting, with its remedy. It changes nothing: it reads, and has the API\n" +
			"server try the write of a run on one object of each namespace, up to 20 of them and\n" +
			"for 20 s, as a dry run. Whoever denies it is in the way; whoever changes the object is\n" +
			"a warning, marked !.\n\n" +
			"Clean CRDs are counted and not listed, unless they are named or with -o wide. Permissions\n" +
			"that are missing are told for all CRDs at once, with the command that grants them.\n\n" +
			"States: Clean (nothing to do), Ready (a run would migrate), Blocked (it would refuse),\n" +
			"Unknown (the API server did not list the objects; the reason says why).\n" +
			"Exit codes: 0 all are clean, 1 some are ready, 3 some are blocked, 2 some are unknown\n" +
			"or can't be read.",
		Example: "  # What is there to do on this cluster?\n  " + a.Program + " crd plan\n\n" +
			"  # One definition, for a script\n  " + a.Program + " crd plan httproutes.gateway.networking.k8s.io -o json\n\n" +
			"  # All definitions of one project\n  " + a.Program + " crd plan -l app.kubernetes.io/part-of=example",
		ValidArgsFunction: CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			err := o.Parse(c, args, true)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, crdreport.PlanList(nil), err)
		},
	}
	cli.ListOnFlagError(a, c, crdreport.PlanList(nil))
	o.AddTo(c)
	c.Flags().BoolVar(&o.scan, "scan", false, "read the metadata of all objects, to tell whether managedFields name versions that are not served")
	c.Flags().BoolVar(&o.preflight, "preflight", true, "try the write on one object of each namespace, as a dry run")
	o.write.AddTo(c)
	o.output.AddTo(c)
	return c
}

func (o *planOptions) migratorOptions() crdmigrator.Options {
	options := crdmigrator.Options{Policy: crdmigrator.Policy{Write: o.write.Write()}, Scan: o.scan}
	if o.preflight {
		options.Preflight = preflight.Run
	}
	return options
}

func (o *planOptions) run(ctx context.Context) error {
	s, findings, err := look(ctx, o.App, permission.CRDPlan, o.Selection, o.migratorOptions())
	if err != nil {
		return err
	}
	items := make([]crdreport.Plan, len(findings))
	for i, f := range findings {
		items[i] = f.item(o.Remedies())
	}
	err = cli.Write(o.Streams.Out, o.output, crdreport.PlanList(items), func(w io.Writer) error {
		plans := readable(findings, o.Remedies())
		if len(plans) == 0 && len(findings) > 0 {
			return nil // the errors say it all
		}
		return crdreport.WritePlans(w, o.Style(o.Streams.Out, o.output), plans, len(o.Names) > 0)
	})
	if err != nil {
		return err
	}
	sayProblems(o.App, findings)
	sayLacking(ctx, o.App, s, findings)
	return cli.Exit(planCode(findings))
}

// look connects and surveys what is selected.
func look(ctx context.Context, a *cli.App, c permission.Command, sel Selection, o crdmigrator.Options) (*session, []finding, error) {
	s, err := connect(ctx, a, cli.Purpose{Program: a.Program, Command: c, Scope: sel.arguments(o.Write)}, o)
	if err != nil {
		return nil, nil, err
	}
	names, err := s.resolve(ctx, sel)
	if err != nil {
		return nil, nil, err
	}
	findings, err := s.survey(ctx, names)
	s.nameLacking(ctx, findings)
	return s, findings, err
}

// readable are the plans of what could be read; people get the rest as errors.
func readable(findings []finding, w remedy.Writer) []crdreport.Plan {
	var plans []crdreport.Plan
	for _, f := range findings {
		if f.problem == nil {
			plans = append(plans, f.item(w))
		}
	}
	return plans
}

func sayProblems(a *cli.App, findings []finding) {
	for _, f := range findings {
		if f.problem != nil {
			a.Console.Problem(f.problem)
		}
	}
}

func planCode(findings []finding) cli.Code {
	code := cli.OK
	for _, f := range findings {
		switch {
		case f.problem != nil:
			code = cli.Worst(code, cli.Error)
		case f.plan.State == crdmigrator.StateUnknown:
			code = cli.Worst(code, cli.Error)
		case f.plan.State == crdmigrator.Blocked:
			code = cli.Worst(code, cli.Refused)
		case f.plan.State == crdmigrator.Ready:
			code = cli.Worst(code, cli.Pending)
		}
	}
	return code
}
