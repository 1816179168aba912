package externalname

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/ready"
)

type readyOptions struct {
	*frame.App
	selection
	output frame.Output
}

// readiness is an item of the list.
type readiness struct {
	Kind string `json:"kind"`
	ready.Decision

	resource string
}

// ResourceName names the managed resource.
func (r readiness) ResourceName() string { return r.resource + "/" + r.Name }

const readyKind = "ExternalNameReadyList"

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
	c.Flags().SortFlags = false
	o.selection.addTo(a, c)
	o.output.AddTo(c, render.NewList[readiness](readyKind, nil))
	return c
}

func (o *readyOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, externalnamepermission.Plan, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return err
	}
	var items []readiness
	code := frame.OK
	err = s.Each(ctx, func(object *unstructured.Unstructured) error {
		if !ready.ObservesOnly(object) {
			return nil
		}
		one := readiness{Kind: s.kind.Kind, Decision: ready.Decide(object), resource: o.resource}
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
	list := render.NewList(readyKind, items)
	err = frame.Write(o.Streams.Out, o.output, list, func(w io.Writer) error {
		return writeReady(w, o.Style(o.Streams.Out, o.output), list.Items)
	})
	if err != nil {
		return err
	}
	return frame.Exit(code)
}

// writeReady writes a table, and the commands for those that are ready.
func writeReady(w io.Writer, s render.Style, items []readiness) error {
	t := render.Table{Header: []string{"READY", "NAMESPACE", "NAME", "REASON", "MESSAGE"}}
	n := int64(0)
	for _, one := range items {
		cell := render.Cell{Text: "✗ No", Tone: render.Bad}
		if one.Ready {
			cell, n = render.Cell{Text: "✓ Yes", Tone: render.Good}, n+1
		}
		t.Add(cell, render.Cell{Text: render.OrDash(one.Namespace)}, render.Cell{Text: one.Name},
			render.Cell{Text: string(one.Reason)}, render.Cell{Text: render.OrDash(one.Message)})
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	for _, one := range items {
		if one.Ready {
			if _, err := fmt.Fprintf(w, "→ %s\n", one.Command); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s ready\n", render.Count(int64(len(items)), "managed resource only observes", "managed resources only observe"), render.Number(n))
	return err
}
