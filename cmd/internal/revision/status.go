package revision

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

type statusOptions struct {
	*frame.App
	selection
	retention retentionFlag
	output    frame.Output
}

func statusCommand(a *frame.App) *cobra.Command {
	o := &statusOptions{App: a}
	c := &cobra.Command{
		Use:   "status [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show the state of each upgrade, and until when you can roll it back",
		Long: "Show every revision that is not at the target version, and the state of its upgrade. The\n" +
			"state is read from the revisions, so that upgrades by a run and by the manager look the\n" +
			"same.\n\n" +
			"States: Upgrade and Relabel (not begun), InUse (the new revision exists, and the named\n" +
			"objects still refer to the old one), Retained (no object refers to the old one; a run\n" +
			"deletes it after the time shown, and you can roll back until then), Deferred, Blocked.\n" +
			"Exit codes: 0 no upgrade is in progress or pending; 1 upgrades are; 3 revisions are\n" +
			"blocked; 2 error, or the scan is incomplete.",
		Example: "  # Show all upgrades of this cluster\n  " + a.Program + " revision status\n\n" +
			"  # One namespace, for runs with another retention\n  " + a.Program + " revision status -n shop --retention=10m",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.addTo(c)
	o.retention.addTo(c)
	o.output.AddTo(c, revisionreport.NewPlanList(nil, nil, remedy.Writer{}))
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, revisionpermission.Status, &o.selection, revision.Options{Policy: decision.Policy{Retention: o.retention.duration()}})
	if err != nil {
		return err
	}
	items, inventory, err := s.scan(ctx)
	if err != nil {
		return err
	}
	list := revisionreport.NewPlanList(items, inventory, o.Remedies())
	list.Items = slices.DeleteFunc(list.Items, func(p revisionreport.Plan) bool { return !p.UnderWay() })
	err = frame.WriteDocument(o.Streams.Out, o.output, list, render.NamesOf(list.Items), func(w io.Writer) error {
		return revisionreport.WriteStatus(w, o.Style(o.Streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	printIncomplete(o.App, unconfirmed(items))
	return frame.Exit(planCode(items, nil))
}
