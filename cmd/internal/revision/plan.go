package revision

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

type planOptions struct {
	*frame.App
	selection
	policyFlags
	output frame.Output
}

func planCommand(a *frame.App) *cobra.Command {
	o := &planOptions{App: a}
	c := &cobra.Command{
		Use:   "plan [-n NAMESPACE] [-l SELECTOR]",
		Short: "Show the versions of the stored objects and what a run would do; changes nothing",
		Long: "Show the version and the form of each stored object, what a run would do with each\n" +
			"revision and why, and which versions you can drop. This command only reads.\n\n" +
			"It reads all namespaces unless you give --namespace; the namespace of the kubeconfig does\n" +
			"not count. Only a scan of the whole cluster shows which versions you can drop. It needs\n" +
			"the permission to list, in all namespaces, all kinds of objects that refer to revisions.\n\n" +
			"States: UpToDate, Relabel (data at the target version, labels not), Upgrade (not begun),\n" +
			"Deferred (a virtual machine is running, or a snapshot is being taken), Blocked (user\n" +
			"action required), InUse (the new revision exists, and objects still refer to the old\n" +
			"one), Retained (no object refers to the old one), Unreferenced (no object refers to it).\n" +
			"Exit codes: 0 nothing left to do, and on a whole cluster no object at an old version;\n" +
			"1 work is pending; 3 revisions are blocked; 2 error, or the scan is incomplete.",
		Example: "  # Show what is left to do on this cluster, and which versions you can drop\n  " + a.Program + " revision plan\n\n" +
			"  # One namespace, with all referrers\n  " + a.Program + " revision plan -n shop -o wide\n\n" +
			"  # Plan the upgrade of virtual machines that run\n  " + a.Program + " revision plan --on-running=Hold",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(a, c); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.selection.addTo(c)
	o.policyFlags.addTo(c)
	o.output.AddTo(c, revisionreport.NewPlanList(nil, nil, remedy.Writer{}))
	return c
}

func (o *planOptions) run(ctx context.Context) error {
	s, err := connect(ctx, o.App, revisionpermission.Plan, &o.selection, revision.Options{Policy: o.policy()})
	if err != nil {
		return err
	}
	items, inventory, err := s.scan(ctx)
	if err != nil {
		return err
	}
	list := revisionreport.NewPlanList(items, inventory, o.Remedies())
	err = frame.WriteDocument(o.Streams.Out, o.output, list, render.NamesOf(list.Items), func(w io.Writer) error {
		return revisionreport.WritePlan(w, o.Style(o.Streams.Out, o.output), list)
	})
	if err != nil {
		return err
	}
	printIncomplete(o.App, unconfirmed(items))
	printAtRisk(o.App, &o.selection, items)
	printShared(o.App, items)
	if inventory == nil {
		o.Console.Printf("? only a scan of the whole cluster shows which versions you can drop: %s\n", o.Hint("revision plan"))
	}
	return frame.Exit(planCode(items, inventory))
}

// planCode returns OK if the scope needs no work and, for the whole cluster, no object uses an old version.
func planCode(items []decision.Item, inventory *revision.Inventory) frame.Code {
	code := frame.OK
	for _, i := range items {
		if i.Reason == decision.ReasonUnconfirmed { // as for a CRD whose state is Unknown
			code = frame.Worst(code, frame.Error)
		}
		switch {
		case i.Action == decision.Blocked:
			code = frame.Worst(code, frame.Refused)
		case i.Action == decision.Upgrade, i.Action == decision.Relabel, i.Action == decision.Deferred, i.Reason == decision.ReasonUnreferenced:
			code = frame.Worst(code, frame.Pending)
		}
	}
	if inventory != nil && len(inventory.InUse) > 0 {
		code = frame.Worst(code, frame.Pending)
	}
	return code
}

// printAtRisk prints which revisions KubeVirt may delete before a run has upgraded them, with the run that is to come first.
func printAtRisk(a *frame.App, s *selection, items []decision.Item) {
	n, first, flags := int64(0), "", "-A"
	if s.namespace != "" {
		flags = "-n " + s.namespace
	}
	running := false
	for _, i := range items {
		if i.AtRisk {
			n, first = n+1, cmp.Or(first, render.ObjectName(i.Namespace, i.Name))
			running = running || i.Reason == decision.ReasonRunning
		}
	}
	if running { // what runs would stay at risk
		flags += " --on-running=" + string(decision.Hold)
	}
	if n == 0 {
		return
	}
	a.Console.Printf("! the spec of a virtual machine names %s, such as %s, that KubeVirt v1.5 or later deletes when it starts next: run godwit before you start or upgrade KubeVirt: %s\n",
		render.Count(n, "revision", "revisions"), first, a.Hint("revision run "+flags))
}

// printShared prints which revisions belong to another virtual machine than one that names them, as after a clone.
func printShared(a *frame.App, items []decision.Item) {
	n, first := int64(0), decision.Item{}
	for _, i := range items {
		if len(i.SharedBy) > 0 {
			if n++; n == 1 {
				first = i
			}
		}
	}
	if n == 0 {
		return
	}
	a.Console.Printf("! virtual machines name %s that they do not own, such as %s by %s: it goes when its owner %s/%s is deleted, and the other machine can't start then. Keep the owner for as long as the other is needed; sharedBy of -o json has them all\n",
		render.Count(n, "revision", "revisions"), render.ObjectName(first.Namespace, first.Name), first.SharedBy[0], first.Owner.Kind, first.Owner.Name)
}

// unconfirmed counts the revisions that may be missing: the scan could not confirm it.
func unconfirmed(items []decision.Item) (n int64) {
	for _, i := range items {
		if i.Reason == decision.ReasonUnconfirmed {
			n++
		}
	}
	return n
}

// printIncomplete prints that a scan did not read some revisions.
func printIncomplete(a *frame.App, unconfirmed int64) {
	if unconfirmed > 0 {
		a.Console.Printf("! the scan is incomplete: it did not find %s that references name, and did not read them again\n",
			render.Count(unconfirmed, "revision", "revisions"))
	}
}
