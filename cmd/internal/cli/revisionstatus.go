package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

type revisionStatusOptions struct {
	revisionScope
	retention retentionFlag
	output    format
}

func (a *app) revisionStatusCommand() *cobra.Command {
	o := &revisionStatusOptions{}
	c := &cobra.Command{
		Use:   "status [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show how far each upgrade is, what holds it, and until when it can be rolled back",
		Long: "Show every revision that is not at the current version, and how far its upgrade is, as\n" +
			"the revisions themselves tell: it is the same whoever upgrades, a run or the manager.\n\n" +
			"States: Upgrade and Relabel (not begun), Held (a new revision is there, and the named\n" +
			"objects refer to the old one), Retained (no reference to the old one is left; a run\n" +
			"removes it after the time shown, and it can be rolled back to until then), Deferred,\n" +
			"Blocked.\n" +
			"Exit codes: 0 nothing is under way or pending, 1 something is, 3 something is blocked,\n" +
			"2 error.",
		Example: "  " + a.program + " revision status\n\n" +
			"  # As runs see it that were given another retention\n  " + a.program + " revision status -n shop --retention=10m",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(a, c)
			if err == nil {
				err = a.revisionStatus(c.Context(), o)
			}
			return listOnError(a.streams.Out, o.output, report.NewRevisionPlanList(nil, nil), err)
		},
	}
	listOnFlagError(a, c, report.NewRevisionPlanList(nil, nil))
	c.Flags().SortFlags = false
	o.addTo(c)
	o.retention.addTo(c, "an old revision")
	o.output.addTo(c)
	return c
}

func (a *app) revisionStatus(ctx context.Context, o *revisionStatusOptions) error {
	s, err := a.connectRevisions(ctx, permission.RevisionStatus, &o.revisionScope, revision.Options{Policy: revision.Policy{Retention: o.retention.duration()}})
	if err != nil {
		return err
	}
	items, survey, err := s.look(ctx)
	if err != nil {
		return err
	}
	list := report.NewRevisionPlanList(items, survey)
	list.Items = slices.DeleteFunc(list.Items, func(p report.RevisionPlan) bool { return !p.UnderWay() })
	err = writeDocument(a.streams.Out, o.output, list, list.Names(), func(w io.Writer) error {
		return report.WriteRevisionStatus(w, a.style(a.streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	return exit(revisionPlanCode(items, nil))
}
