package externalname

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
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
		Short: "Restore the external names from before a run, byte for byte, and return what was handed over",
		Long: "Restore the old external name of each managed resource that a run has renamed, also of one that\n" +
			"an interrupted run has paused. The annotation godwit.dev/renaming has the old name; the command\n" +
			"removes it. A name that another client has changed since stays. The provider need not run.\n\n" +
			"Where a restore has handed an external resource over to a managed resource, or was interrupted, pause\n" +
			"it, wait until its provider reports the pause, and give the original its management policies back.\n" +
			"The replacement stays paused, without the name, and only observes. An original that was deleted can't have\n" +
			"it back.\n\n" +
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
	returns []handoverReturn
	// unreadable are managed resources whose handover can't be read.
	unreadable []fleet.Result
	report     fleet.Report
	err        error
}

// handoverReturn are the pairs of two kinds that are to be returned.
type handoverReturn struct {
	*handover.Handover
	pairs []handover.Pair
}

func (o *rollbackOptions) plan(ctx context.Context) (frame.Change, error) {
	s, err := connect(ctx, o.App, externalnamepermission.Apply, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return nil, err
	}
	if err := s.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	r := &rollback{rollbackOptions: o, session: s}
	return r, r.find(ctx)
}

// find finds the handovers of which managed resources of the kind are a part.
func (r *rollback) find(ctx context.Context) error {
	type kinds struct{ from, to string }
	pairs, seen := map[kinds][]handover.Pair{}, map[[2]handover.Object]bool{} // of one kind, both have the annotation
	err := r.session.Each(ctx, func(o *unstructured.Unstructured) error {
		p, damaged := handover.PartOf(r.resource, o)
		if damaged != nil {
			i := fleet.Item{Namespace: o.GetNamespace(), Name: o.GetName(), Current: o.GetAnnotations()[externalNameAnnotation], Finding: *damaged}
			r.unreadable = append(r.unreadable, fleet.Result{Item: i, Phase: fleet.PhaseFailed})
		}
		if p != nil && !p.Returned && !seen[[2]handover.Object{p.From, p.To}] {
			seen[[2]handover.Object{p.From, p.To}] = true
			k := kinds{p.From.Resource, p.To.Resource}
			pairs[k] = append(pairs[k], p.Pair)
		}
		return nil
	})
	if err != nil {
		return r.session.explain(ctx, err)
	}
	for k, all := range pairs {
		from, err := r.session.newWriter(ctx, k.from)
		if err != nil {
			return err
		}
		to, err := r.session.newWriter(ctx, k.to)
		if err != nil {
			return err
		}
		h, err := handover.New(r.session.Config, from.kind, to.kind, handover.Options{Limiter: r.session.limiter})
		if err != nil {
			return err
		}
		r.returns = append(r.returns, handoverReturn{h, all})
	}
	return nil
}

// Question implements frame.Change.
func (r *rollback) Question() (string, error) {
	return fmt.Sprintf("Restore the old external names of %s in %s on %s?", r.resource, where(r.namespace), r.session.Where()), nil
}

// Run implements frame.Change.
func (r *rollback) Run(ctx context.Context) {
	r.report.Results = r.unreadable
	rollbacks := []func() (fleet.Report, error){}
	for _, back := range r.returns {
		rollbacks = append(rollbacks, func() (fleet.Report, error) { return back.Rollback(ctx, back.pairs) })
	}
	// Renamings come last: a handover knows the present names.
	for _, roll := range append(rollbacks, func() (fleet.Report, error) { return r.session.Rollback(ctx) }) {
		var one fleet.Report
		one, r.err = roll()
		r.report.Results = append(r.report.Results, one.Results...)
		if r.err != nil {
			return
		}
	}
}

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
