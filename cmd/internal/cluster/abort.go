package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

type abortOptions struct {
	*frame.App
	hubFlags
	yes     bool
	watch   bool
	timeout frame.DurationFlag
	output  frame.Output
}

func abortCommand(a *frame.App) *cobra.Command {
	o := &abortOptions{App: a}
	c := &cobra.Command{
		Use:   "abort NAME [-n NAMESPACE] [--watch]",
		Short: "Return the clusters of a migration to the source hub",
		Long: "Ask the manager to roll a migration back: every cluster returns to the source hub, and the target hub\n" +
			"deletes what the migration has created there. For a migration that has failed, the manager runs the\n" +
			"rollback again.\n\n" +
			"In phases Cleaning and Completed the source hub has begun to delete. Move the clusters back by\n" +
			"another migration then: the command prints it.\n\n" +
			"Exit codes: 0 the rollback is asked for, or with --watch every cluster is back; 3 refused, and nothing\n" +
			"written; 4 with --watch some clusters have moved; 2 error; 124 --timeout; 130 interrupted.",
		Example:           "  " + a.Program + " cluster abort east --watch",
		Args:              oneName,
		ValidArgsFunction: completeMigrations(a),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.BoolVarP(&o.watch, "watch", "w", false, "show the progress until the rollback has ended")
	flags.Var(&o.timeout, "timeout", "stop watching after this time; the rollback continues (default: no limit)")
	addManagerNamespace(c, &o.managerNamespace)
	o.output.AddTo(c, clusterreport.NoMigration("", ""))
	return c
}

func (o *abortOptions) run(ctx context.Context, name string) error {
	if !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("abort")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	c, m, err := o.openMigration(ctx, o.App, clusterpermission.Run, name)
	if err != nil {
		return err
	}
	if why := notAbortable(o.App, m); why != "" {
		return frame.Refuse(fmt.Errorf("managedclustermigration %s can't be aborted: %s", name, why))
	}
	if err := c.missing(ctx); err != nil {
		return frame.Refuse(err)
	}
	if !o.yes {
		o.Console.Printf("%s\nReturn the clusters of managedclustermigration %s in namespace %s on %s to hub %s? [y/N] ", clusterreport.Progress(m.report(c)), name, m.Namespace, c.Where(), m.Spec.From)
		if err := o.Confirm(ctx); err != nil {
			return err
		}
	}
	return o.abort(ctx, c, m)
}

// abort asks for the rollback. It is one request, whose answer a user who interrupts waits for.
func (o *abortOptions) abort(ctx context.Context, c *connection, m migration) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	before := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[api.RequestAnnotation] = api.RequestRollback
	if err := c.client.Patch(bounded, m.ManagedClusterMigration, client.MergeFrom(before)); err != nil {
		return c.explain(bounded, err)
	}
	o.Console.Printf("the rollback of managedclustermigration %s is asked for\n", m.Name)
	if !o.watch {
		printWatch(o.App, m)
		return c.print(o.App, o.output, m)
	}
	m, err := c.followRequest(ctx, m)
	if err != nil {
		return err
	}
	return c.followToEnd(ctx, o.App, o.output, m, abortCode)
}

// abortCode is OK for a migration whose clusters are all back.
func abortCode(m clusterreport.Migration) frame.Code {
	switch {
	case !m.Settled:
		return frame.Pending
	case m.Phase == api.PhaseFailed:
		return frame.OK
	}
	return frame.Partial
}

// notAbortable returns why a migration can't be aborted, and what to do.
func notAbortable(a *frame.App, m migration) string {
	switch {
	case m.state.Phase == api.PhaseCleaning, m.state.Phase == api.PhaseCompleted:
		var moved []string
		for _, one := range m.state.Clusters {
			if one.State == hub.Moved || one.State == hub.Registered {
				moved = append(moved, one.Name)
			}
		}
		back := a.Hint(fmt.Sprintf("cluster start %s --from=%s --to=%s %s --namespace=%s", nextName(m.Name, "back", nil), m.Spec.To, m.Spec.From, strings.Join(moved, " "), m.Namespace))
		return "the source hub deletes in phase " + string(m.state.Phase) + "; move the clusters back: " + back
	case m.state.Phase == api.PhaseFailed && m.state.RollbackStage == "":
		return "it has failed before it changed a hub, so that there is nothing to return"
	}
	return ""
}
