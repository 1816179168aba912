package resource

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

type planOptions struct {
	*frame.App
	selection
	output frame.Output
}

func planCommand(a *frame.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan {RESOURCE... | --all} [-n NAMESPACE]",
		Short: "Show how many objects a run would write and what blocks it; changes nothing",
		Long: "Show for each resource how many objects a run would write, and what blocks it. Name resources as\n" +
			"for kubectl: secrets, deployments.apps or horizontalpodautoscalers.v2.autoscaling. The command only\n" +
			"reads.\n\n" +
			"No API shows with which key an object is stored. So each resource with objects is Ready, also if\n" +
			"all are current: a run then changes nothing in etcd. `" + a.Program + " resource verify` reads etcd.\n\n" +
			"States: Clean (no objects), Ready (a run writes objects), Blocked (a run is refused: the resource is\n" +
			"not in etcd, for example), Unknown (the API server did not list the objects).\n" +
			"Exit codes: 0 all are Clean, 1 some are Ready, 3 some are Blocked, 2 some are Unknown, or error.",
		Example: "  # Secrets and ConfigMaps, after a change of the encryption key\n" +
			"  " + a.Program + " resource plan secrets configmaps\n\n" +
			"  # All resources that the API server keeps in etcd\n" +
			"  " + a.Program + " resource plan --all -o json",
		ValidArgsFunction: completeNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.addTo(c)
	o.output.AddTo(c, resourcereport.PlanList(nil))
	return c
}

func (o *planOptions) run(ctx context.Context) error {
	s, findings, err := connectAndPlan(ctx, o.App, resourcepermission.Plan, &o.selection, resource.Options{})
	if err != nil {
		return err
	}
	s.nameLacking(ctx, findings, &o.selection)
	if err := writePlans(o.Streams.Out, o.App, o.output, findings); err != nil {
		return err
	}
	s.printUnknownServers(o.App)
	return frame.Exit(planCode(findings))
}

func writePlans(w io.Writer, a *frame.App, output frame.Output, findings []finding) error {
	items := itemsOf(findings, a.Remedies())
	return frame.Write(w, output, resourcereport.PlanList(items), func(w io.Writer) error {
		return resourcereport.WritePlans(w, a.Style(w, output), items)
	})
}

func itemsOf(findings []finding, w remedy.Writer) []resourcereport.Plan {
	items := make([]resourcereport.Plan, len(findings))
	for i, f := range findings {
		items[i] = f.item(w)
	}
	return items
}

func planCode(findings []finding) frame.Code {
	code := frame.OK
	for _, f := range findings {
		switch f.plan.State {
		case decision.StateUnknown:
			code = frame.Worst(code, frame.Error)
		case decision.Blocked:
			code = frame.Worst(code, frame.Refused)
		case decision.Ready:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
