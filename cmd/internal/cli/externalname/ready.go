package externalname

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/ready"
)

type readyOptions struct {
	*cli.App
	selection
	output cli.Output
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

func readyCommand(a *cli.App) *cobra.Command {
	o := &readyOptions{App: a}
	empty := report.NewList[readiness](readyKind, nil)
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
			err := o.parse(a, c)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, empty, err)
		},
	}
	cli.ListOnFlagError(a, c, empty)
	c.Flags().SortFlags = false
	o.selection.addTo(a, c)
	o.output.AddTo(c)
	return c
}

func (o *readyOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, permission.ExternalNamePlan, &o.selection, fleet.Options{Scope: o.scope()})
	if err != nil {
		return err
	}
	var items []readiness
	code := cli.OK
	err = s.Each(ctx, func(object *unstructured.Unstructured) error {
		if !ready.ObservesOnly(object) {
			return nil
		}
		one := readiness{Kind: s.kind.Kind, Decision: ready.Decide(object), resource: o.resource}
		if one.Ready {
			one.Command += o.ClusterFlags()
		} else {
			code = cli.Pending
		}
		items = append(items, one)
		return nil
	})
	if err != nil {
		return s.explain(ctx, err)
	}
	list := report.NewList(readyKind, items)
	err = cli.Write(o.Streams.Out, o.output, list, func(w io.Writer) error {
		return writeReady(w, o.Style(o.Streams.Out, o.output), list.Items)
	})
	if err != nil {
		return err
	}
	return cli.Exit(code)
}

// writeReady writes a table, and the commands for those that are ready.
func writeReady(w io.Writer, s report.Style, items []readiness) error {
	t := report.Table{Header: []string{"READY", "NAMESPACE", "NAME", "REASON", "MESSAGE"}}
	n := int64(0)
	for _, one := range items {
		cell := report.Cell{Text: "✗ No", Tone: report.Bad}
		if one.Ready {
			cell, n = report.Cell{Text: "✓ Yes", Tone: report.Good}, n+1
		}
		t.Add(cell, report.Cell{Text: report.OrDash(one.Namespace)}, report.Cell{Text: one.Name},
			report.Cell{Text: string(one.Reason)}, report.Cell{Text: report.OrDash(one.Message)})
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
	_, err := fmt.Fprintf(w, "%s: %s ready\n", report.Count(int64(len(items)), "managed resource only observes", "managed resources only observe"), report.Number(n))
	return err
}
