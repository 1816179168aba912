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

type rollbackOptions struct {
	*frame.App
	selection
	yes     bool
	timeout frame.DurationFlag
	output  frame.Output
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
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	o.selection.addTo(a, c)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.Var(&o.timeout, "timeout", "end after this time; the same command resumes (default: no limit)")
	o.output.AddTo(c, externalnamereport.RunList(fleet.Kind{}, nil, remedy.Writer{}))
	return c
}

func (o *rollbackOptions) run(ctx context.Context) error {
	if err := o.checkNamespaces(); err != nil {
		return err
	}
	if !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("rollback")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	s, err := connect(ctx, o.App, externalnamepermission.Apply, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return err
	}
	if err := s.missing(ctx); err != nil {
		return frame.Refuse(err)
	}
	if !o.yes {
		o.Console.Printf("Restore the old external names of %s in %s on %s? [y/N] ", o.resource, where(o.namespace), s.Where())
		if err := o.Confirm(ctx); err != nil {
			return err
		}
	}
	said := o.SayEnding(ctx)
	r, err := s.Rollback(ctx)
	said()
	return endRun(ctx, o.App, ending{session: s, output: o.output, report: r, err: err})
}

func where(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
