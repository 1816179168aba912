package revision

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
)

type statusOptions struct {
	*cli.App
	selection
	retention retentionFlag
	output    cli.Output
}

func statusCommand(a *cli.App) *cobra.Command {
	o := &statusOptions{App: a}
	c := &cobra.Command{
		Use:   "status [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show how far each upgrade is, what holds it, and until when it can be rolled back",
		Long: "Show every revision that is not at the current version, and how far its upgrade is, as\n" +
			"the revisions themselves tell: it is the same whoever upgrades, a run or the manager.\n\n" +
			"States: Upgrade and Relabel (not begun), InUse (a new revision is there, and the named\n" +
			"objects refer to the old one), Retained (no reference to the old one is left; a run\n" +
			"removes it after the time shown, and it can be rolled back to until then), Deferred,\n" +
			"Blocked.\n" +
			"Exit codes: 0 nothing is under way or pending, 1 something is, 3 something is blocked,\n" +
			"2 error.",
		Example: "  " + a.Program + " revision status\n\n" +
			"  # As runs see it that were given another retention\n  " + a.Program + " revision status -n shop --retention=10m",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(a, c)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, revisionreport.NewPlanList(nil, nil, ""), err)
		},
	}
	cli.ListOnFlagError(a, c, revisionreport.NewPlanList(nil, nil, ""))
	c.Flags().SortFlags = false
	o.addTo(c)
	o.retention.addTo(c, "an old revision")
	o.output.AddTo(c)
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, permission.RevisionStatus, &o.selection, revision.Options{Policy: revision.Policy{Retention: o.retention.duration()}})
	if err != nil {
		return err
	}
	items, survey, err := s.look(ctx)
	if err != nil {
		return err
	}
	list := revisionreport.NewPlanList(items, survey, o.ClusterFlags())
	list.Items = slices.DeleteFunc(list.Items, func(p revisionreport.Plan) bool { return !p.UnderWay() })
	err = cli.WriteDocument(o.Streams.Out, o.output, list, report.NamesOf(list.Items), func(w io.Writer) error {
		return revisionreport.WriteStatus(w, o.Style(o.Streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	sayIncomplete(o.App, unconfirmed(items))
	return cli.Exit(planCode(items, nil))
}
