package externalname

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/ready"
)

type readyOptions struct {
	*frame.App
	selection
	output frame.Output
}

func readyCommand(a *frame.App) *cobra.Command {
	o := &readyOptions{App: a}
	c := &cobra.Command{
		Use:   "ready --resource=CRD [-n NAMESPACE] [-l SELECTOR]",
		Short: "List the managed resources that only observe and can be managed without a change",
		Long: "List the managed resources whose spec.managementPolicies are Observe alone, and whether the spec is\n" +
			"as the external resource is: then full management changes nothing. The command prints the patch for\n" +
			"each. It only reads.\n\n" +
			"It needs the condition Drift, which providers that use package externalname set.\n\n" +
			"Exit codes: 0 all are ready, 1 some are not, 2 error.",
		Example:           "  " + a.Program + " externalname ready --resource=members.example.org",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.selection.addTo(a, c)
	o.output.AddTo(c, externalnamereport.ReadyList(nil))
	return c
}

func (o *readyOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, externalnamepermission.Plan, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return err
	}
	var items []externalnamereport.Readiness
	code := frame.OK
	err = s.Each(ctx, func(object *unstructured.Unstructured) error {
		if !ready.ObservesOnly(object) {
			return nil
		}
		one := externalnamereport.NewReadiness(s.kind, ready.Decide(object))
		if one.Ready {
			one.Command += o.ClusterFlags()
		} else {
			code = frame.Pending
		}
		items = append(items, one)
		return nil
	})
	if err != nil {
		return s.explain(ctx, err)
	}
	list := externalnamereport.ReadyList(items)
	if err := frame.Print(o.App, o.output, list, externalnamereport.WriteReady); err != nil {
		return err
	}
	return frame.Exit(code)
}
