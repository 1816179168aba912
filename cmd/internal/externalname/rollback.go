package externalname

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

type rollbackOptions struct {
	*frame.App
	selection
	change frame.ChangeFlags
	output frame.Output
}

func rollbackCommand(a *frame.App) *cobra.Command {
	o := &rollbackOptions{App: a}
	c := &cobra.Command{
		Use:   "rollback --resource=CRD {-n NAMESPACE | -A} [-l SELECTOR]",
		Short: "Restore the external names from before an apply, byte for byte",
		Long: "Restore the old external name of each managed resource that an apply has renamed, also of one that\n" +
			"an interrupted apply has paused. The annotation godwit.dev/renaming has the old name; the command\n" +
			"removes it. A name that another client has changed since stays. The provider need not run.\n\n" +
			"Exit codes: 0 all names are restored or nothing to do; 1 some are left to another client; 3 refused,\n" +
			"and nothing written; 4 some failed; 2 error; 124 --timeout; 130 interrupted.",
		Example:           "  " + a.Program + " externalname rollback --resource=members.example.org -n shop",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parseToWrite(a, c); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	o.selection.addTo(a, c)
	o.change.AddYesTo(c)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, externalnamereport.RunList(fleet.Kind{}, nil, remedy.Writer{}))
	return c
}

// rollback is a planned rollback.
type rollback struct {
	*rollbackOptions
	session *session
	report  fleet.Report
	err     error
}

func (o *rollbackOptions) plan(ctx context.Context) (frame.Change, error) {
	s, err := connect(ctx, o.App, externalnamepermission.Apply, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return nil, err
	}
	if err := s.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	return &rollback{rollbackOptions: o, session: s}, nil
}

// Question implements frame.Change.
func (r *rollback) Question() (string, error) {
	return fmt.Sprintf("Restore the old external names of %s in %s on %s?", r.resource, where(r.namespace), r.session.Where()), nil
}

// Run implements frame.Change.
func (r *rollback) Run(ctx context.Context) { r.report, r.err = r.session.Rollback(ctx) }

// End implements frame.Change.
func (r *rollback) End(ctx context.Context) error {
	return endRun(ctx, r.App, ending{session: r.session, output: r.output, report: r.report, err: r.err})
}

func where(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
