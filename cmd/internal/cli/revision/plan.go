package revision

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
)

type planOptions struct {
	*cli.App
	selection
	policyFlags
	output cli.Output
}

func planCommand(a *cli.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show which stashed objects speak which version, and what holds each; changes nothing",
		Long: "Show at which version and in which form objects are stashed, what a run would do about\n" +
			"each revision and why not, and which versions nothing speaks any more, so that they can\n" +
			"be dropped. It only reads.\n\n" +
			"All namespaces are looked at unless --namespace says otherwise, whatever namespace the\n" +
			"kubeconfig names: which versions can be dropped is known only of a whole cluster. It\n" +
			"takes the right to list everything that refers to revisions, everywhere.\n\n" +
			"States: UpToDate, Relabel (the data is, labels are not), Upgrade (not begun), Deferred (a\n" +
			"virtual machine runs, a snapshot is being taken), Blocked (a user has to decide or to\n" +
			"repair something), InUse (a new revision is there, and a reference to the old one),\n" +
			"Retained (no reference to the old one is left), Unreferenced (no reference was found).\n" +
			"Exit codes: 0 nothing left to do, and in a whole cluster nothing at an old version, 1\n" +
			"work is pending, 3 something is blocked, 2 error.",
		Example: "  # What is there to do on this cluster, and which versions can be dropped?\n  " + a.Program + " revision plan\n\n" +
			"  # One namespace, with all referrers\n  " + a.Program + " revision plan -n shop -o wide\n\n" +
			"  # What if virtual machines need not stop first?\n  " + a.Program + " revision plan --on-running=Hold",
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
	o.selection.addTo(c)
	o.policyFlags.addTo(c)
	o.output.AddTo(c)
	return c
}

func (o *planOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, permission.RevisionPlan, &o.selection, revision.Options{Policy: o.policy()})
	if err != nil {
		return err
	}
	items, survey, err := s.look(ctx)
	if err != nil {
		return err
	}
	list := revisionreport.NewPlanList(items, survey, o.ClusterFlags())
	err = cli.WriteDocument(o.Streams.Out, o.output, list, report.NamesOf(list.Items), func(w io.Writer) error {
		return revisionreport.WritePlan(w, o.Style(o.Streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	sayIncomplete(o.App, unconfirmed(items))
	if survey == nil {
		o.Console.Printf("? which versions can be dropped is known of a whole cluster alone: %s\n", o.Hint("revision plan"))
	}
	return cli.Exit(planCode(items, survey))
}

// planCode is OK when nothing is left to do in scope and, if that is a whole
// cluster, nothing holds an old version.
func planCode(items []revision.Item, survey *revision.Inventory) cli.Code {
	code := cli.OK
	for _, i := range items {
		if i.Reason == revision.ReasonUnconfirmed { // as for a CRD whose state is Unknown
			code = cli.Worst(code, cli.Error)
		}
		switch i.Action {
		case revision.Blocked:
			code = cli.Worst(code, cli.Refused)
		case revision.Upgrade, revision.Relabel, revision.Deferred:
			code = cli.Worst(code, cli.Pending)
		}
	}
	if survey != nil && len(survey.InUse) > 0 {
		code = cli.Worst(code, cli.Pending)
	}
	return code
}

// unconfirmed counts the revisions of which a scan did not find out whether they are missing.
func unconfirmed(items []revision.Item) (n int64) {
	for _, i := range items {
		if i.Reason == revision.ReasonUnconfirmed {
			n++
		}
	}
	return n
}

// sayIncomplete says that a scan left revisions out.
func sayIncomplete(a *cli.App, unconfirmed int64) {
	if unconfirmed > 0 {
		a.Console.Printf("! the scan is incomplete: it did not find %s that references name, and did not read them again\n",
			report.Count(unconfirmed, "revision", "revisions"))
	}
}
