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

type rollbackOptions struct{ requestOptions }

func rollbackCommand(a *frame.App) *cobra.Command {
	o := &rollbackOptions{requestOptions{App: a}}
	c := &cobra.Command{
		Use:     "rollback NAME [-n NAMESPACE] [--watch]",
		Aliases: []string{"abort"},
		Short:   "Return the clusters of a migration to the source hub",
		Long: "Ask the manager to roll a migration back: every cluster returns to the source hub, and the target hub\n" +
			"deletes what the migration has created there. For a migration whose rollback has not ended, the manager\n" +
			"runs it again, for the clusters that are not back yet. In phase Registering, clusters that are\n" +
			"registered at the target hub by then stay there.\n\n" +
			"In phases Cleaning and Completed the source hub has begun to delete. Move the clusters back by\n" +
			"another migration then: the command prints it.\n\n" + lostTargetHelp + "\n\n" +
			"Exit codes: 0 the rollback is requested, or with --watch every cluster is back; 3 refused, and nothing\n" +
			"written; 4 with --watch some clusters have moved; 2 error; 124 --timeout; 130 interrupted.",
		Example: "  " + a.Program + " cluster rollback east --watch\n\n" +
			"  # The target hub of `cluster move` never answers again\n" +
			"  " + a.Program + " cluster rollback cluster1-move-1 --from-context=hub1",
		Args:              oneName,
		ValidArgsFunction: completeMigrations(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parseDirect(); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, args[0]) })
		},
	}
	o.addTo(c)
	return c
}

// rollback is the planned rollback of a migration.
type rollback struct{ request }

func (o *rollbackOptions) plan(ctx context.Context, name string) (frame.Change, error) {
	c, m, err := o.openMigration(ctx, o.App, clusterpermission.Run, name)
	if err != nil {
		return nil, err
	}
	if why := whyNotAbortable(o.App, c, m); why != "" {
		return nil, frame.Refuse(fmt.Errorf("%s %s can't be aborted: %s", c.kind(), name, why))
	}
	if err := c.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	if err := c.checkLost(ctx, o.App, m, "rollback "+name); err != nil {
		return nil, err
	}
	return &rollback{request{requestOptions: &o.requestOptions, connection: c, migration: m}}, nil
}

// Question implements frame.Change.
func (o *rollback) Question() (string, error) {
	m := o.migration
	return fmt.Sprintf("%s\n%sReturn the clusters of %s %s in namespace %s on %s to hub %s?",
		clusterreport.Progress(m.report(o.connection)), o.connection.withoutTarget(m), o.connection.kind(), m.Name, m.Namespace, o.connection.Where(), m.Spec.From), nil
}

// Run implements frame.Change.
func (o *rollback) Run(ctx context.Context) {
	o.patch(ctx, func(m *api.ManagedClusterMigration) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[api.RequestAnnotation] = api.RequestRollback
	}, client.MergeFrom)
}

// End implements frame.Change.
func (o *rollback) End(ctx context.Context) error {
	if o.err != nil {
		return o.err
	}
	c, m := o.connection, o.migration
	o.Console.Printf("rollback of %s %s requested\n", c.kind(), m.Name)
	return c.end(ctx, o.App, m, ending{o.output, o.watch, abortCode})
}

// abortCode returns OK if all clusters of the migration have returned.
func abortCode(m clusterreport.Migration) frame.Code {
	switch {
	case !m.Settled:
		return frame.Pending
	case m.Phase == api.PhaseFailed, m.Counts.Restored == m.Counts.Total:
		return frame.OK
	}
	return frame.Partial
}

// whyNotAbortable returns why a migration can't be aborted, and what to do.
func whyNotAbortable(a *frame.App, c *connection, m migration) string {
	switch {
	case c.losesTarget() && !m.state.Settled(): // what waits for the target hub ends
		return ""
	case m.state.Phase == api.PhaseCleaning, m.state.Phase == api.PhaseCompleted:
		var moved []string
		for _, one := range m.state.Clusters {
			if one.State == hub.Moved || one.State == hub.Registered {
				moved = append(moved, one.Name)
			}
		}
		if c.pair != nil {
			return "the source hub deletes in phase " + string(m.state.Phase) + "; move the clusters back: " +
				a.Hint("cluster move "+strings.Join(moved, " ")+c.pair.backwards().flags(m.Namespace))
		}
		back := a.Hint(fmt.Sprintf("cluster run %s --from=%s --to=%s %s --namespace=%s", nextName(m.Name, "back", nil), m.Spec.To, m.Spec.From, strings.Join(moved, " "), m.Namespace))
		return "the source hub deletes in phase " + string(m.state.Phase) + "; move the clusters back: " + back
	case m.state.Phase == api.PhaseFailed && m.Status.CompletionTime != nil && m.state.RollbackStage != "":
		return "its rollback has ended, and a cluster may have left the source hub since"
	case m.state.Phase == api.PhaseFailed && m.state.RollbackStage == "":
		return "it has failed before it changed a hub, so that there is nothing to return"
	}
	return ""
}
