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

type revisionPlanOptions struct {
	revisionScope
	revisionPolicy
	output format
}

func (a *app) revisionPlanCommand() *cobra.Command {
	o := &revisionPlanOptions{}
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
			"repair something), Held (a new revision is there, and a reference to the old one),\n" +
			"Retained (no reference to the old one is left), Unreferenced (no reference was found).\n" +
			"Exit codes: 0 nothing left to do, and in a whole cluster nothing at an old version, 1\n" +
			"work is pending, 3 something is blocked, 2 error.",
		Example: "  # What is there to do on this cluster, and which versions can be dropped?\n  " + a.program + " revision plan\n\n" +
			"  # One namespace, with all referrers\n  " + a.program + " revision plan -n shop -o wide\n\n" +
			"  # What if virtual machines need not stop first?\n  " + a.program + " revision plan --on-running=Hold",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(a, c)
			if err == nil {
				err = a.revisionPlan(c.Context(), o)
			}
			return listOnError(a.streams.Out, o.output, report.NewRevisionPlanList(nil, nil), err)
		},
	}
	listOnFlagError(a, c, report.NewRevisionPlanList(nil, nil))
	c.Flags().SortFlags = false
	o.revisionScope.addTo(c)
	o.revisionPolicy.addTo(c)
	o.output.addTo(c)
	return c
}

func (a *app) revisionPlan(ctx context.Context, o *revisionPlanOptions) error {
	s, err := a.connectRevisions(ctx, permission.RevisionPlan, &o.revisionScope, revision.Options{Policy: o.policy()})
	if err != nil {
		return err
	}
	items, survey, err := s.look(ctx)
	if err != nil {
		return err
	}
	list := report.NewRevisionPlanList(items, survey)
	err = writeDocument(a.streams.Out, o.output, list, list.Names(), func(w io.Writer) error {
		return report.WriteRevisionPlan(w, a.style(a.streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	if survey == nil {
		a.console.printf("? which versions can be dropped is known of a whole cluster alone: %s\n", a.hint("revision plan"))
	}
	return exit(revisionPlanCode(items, survey))
}

// revisionPlanCode is OK when nothing is left to do in scope and, if that is a whole
// cluster, nothing holds an old version.
func revisionPlanCode(items []revision.Item, survey *revision.Inventory) Code {
	code := OK
	for _, i := range items {
		switch i.Action {
		case revision.Blocked:
			code = worst(code, Refused)
		case revision.Upgrade, revision.Relabel, revision.Deferred:
			code = worst(code, Pending)
		}
	}
	if survey != nil && len(survey.InUse) > 0 {
		code = worst(code, Pending)
	}
	return code
}

// would are the items that a run begins with or goes on with.
func would(items []revision.Item) []revision.Item {
	return slices.DeleteFunc(slices.Clone(items), func(i revision.Item) bool {
		return i.Action != revision.Upgrade && i.Action != revision.Relabel
	})
}
