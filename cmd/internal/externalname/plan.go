package externalname

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

type planOptions struct {
	*frame.App
	selection
	nameFlags
	identityFlags
	output frame.Output
}

func planCommand(a *frame.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan --resource=CRD --name=CEL [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show which external names an apply would change, and why it skips others; changes nothing",
		Long: "Show the class of each external name, the name that the expression proposes, and what an apply\n" +
			"would do. This command only reads.\n\n" + nameHelp +
			"It plans for all namespaces unless you give --namespace; the namespace of the kubeconfig does not\n" +
			"count. Names of other namespaces count as well, since they share the external system. Without the\n" +
			"permission to list them, names are skipped (OthersNotRead).\n\n" +
			"Classes: Canonical, Legacy{form}, Empty, Lost, Invalid, Duplicate, CreateIncomplete, Deleting, NotOurs\n" +
			"(of Upjet, or no managed resource). Actions: None, Rename, Resume (a run was interrupted), Skip.\n" +
			"A name that a GitOps tool or a Composition owns is skipped: `-o json` has the patch for its source.\n\n" +
			"Exit codes: 0 nothing to rename, 1 names to rename, 3 some are skipped, 2 error.",
		Example: "  # Names in lower case\n" +
			"  " + a.Program + " externalname plan --resource=members.example.org --name='name.lowerAscii()'\n\n" +
			"  # Add a field of the spec to names that lack it\n" +
			"  " + a.Program + " externalname plan --resource=members.example.org \\\n" +
			"    --name='size(segments) == 1 ? escape(object.spec.forProvider.org) + \"/\" + name : name'",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.selection.addTo(a, c)
	o.nameFlags.addTo(c)
	o.identityFlags.addTo(c)
	o.output.AddTo(c, externalnamereport.PlanList(fleet.Kind{}, nil, remedy.Writer{}))
	return c
}

func (o *planOptions) run(ctx context.Context) error {
	naming, err := o.naming()
	if err != nil {
		return err
	}
	s, err := connect(ctx, o.App, externalnamepermission.Plan, &o.selection, o.options(&o.selection))
	if err != nil {
		return err
	}
	items, err := s.plan(ctx, naming)
	if err != nil {
		return err
	}
	if err := o.printPlan(s, items, o.output); err != nil {
		return err
	}
	return frame.Exit(planCode(items))
}

func (o *planOptions) printPlan(s *session, items []fleet.Item, f frame.Output) error {
	list := externalnamereport.PlanList(s.kind, items, s.remedies)
	return frame.Print(o.App, f, list, externalnamereport.WritePlan)
}

func planCode(items []fleet.Item) frame.Code {
	code := frame.OK
	for _, i := range items {
		switch i.Action {
		case fleet.Skip:
			code = frame.Worst(code, frame.Refused)
		case fleet.Rename, fleet.Resume:
			code = frame.Worst(code, frame.Pending)
		case fleet.None:
		}
	}
	return code
}
