package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// creation are the flags of a command that creates a migration.
type creation struct {
	hubFlags
	command string // which the user has typed
	yes     bool
	dryRun  frame.Choice
	watch   bool
	timeout frame.DurationFlag
	output  frame.Output
}

func (o *creation) addTo(a *frame.App, c *cobra.Command) {
	flags := c.Flags()
	o.hubFlags.addTo(a, c)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.dryRun = frame.Choice{Value: frame.DryRunNone, Allowed: []string{frame.DryRunNone, frame.DryRunServer}, Kind: "string"}
	o.dryRun.AddTo(c, "dry-run", "", "none; server: have the API server check the migration, and write nothing")
	flags.BoolVarP(&o.watch, "watch", "w", false, "show the progress until the migration has ended")
	flags.Var(&o.timeout, "timeout", "stop watching after this time; the migration continues (default: no limit)")
	o.output.AddTo(c, clusterreport.NoMigration("", ""))
}

// checkName refuses the name that the API server would refuse.
func checkName(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return frame.Usagef("%q is no name of a migration: %s", name, wrong[0])
	}
	return nil
}

// create does the preflight of a migration, asks, and creates it.
func (o *creation) create(ctx context.Context, a *frame.App, c *connection, m *api.ManagedClusterMigration) error {
	writes := o.dryRun.Value == frame.DryRunNone
	if writes && !o.yes && !a.CanAsk() {
		return a.RefuseUnasked(o.command)
	}
	if err := c.missing(ctx); err != nil {
		return frame.Refuse(err)
	}
	err := c.client.Get(ctx, client.ObjectKeyFromObject(m), &api.ManagedClusterMigration{})
	if err == nil {
		return frame.Refuse(fmt.Errorf("managedclustermigration %s exists in namespace %s: nothing was written; give another name, or see it: %s",
			m.Name, m.Namespace, a.Hint("cluster status "+m.Name+" --namespace="+m.Namespace)))
	}
	if !apierrors.IsNotFound(err) {
		return c.explain(ctx, err)
	}
	if err := o.check(ctx, a, c, m); err != nil {
		return err
	}
	if !writes {
		if err := c.client.Create(ctx, m, client.DryRunAll); err != nil {
			return c.refused(ctx, m, err)
		}
		a.Console.Printf("dry run: nothing was written\n")
		return c.print(a, o.output, migration{m, hub.New(m.Spec)})
	}
	if !o.yes {
		a.Console.Printf("\nMove %s from %s to %s, by managedclustermigration %s in namespace %s on %s? [y/N] ", clustersOf(m), m.Spec.From, m.Spec.To, m.Name, m.Namespace, c.Where())
		if err := a.Confirm(ctx); err != nil {
			return err
		}
	}
	return o.write(ctx, a, c, m)
}

// check prints the preflight, and refuses to create what is blocked.
func (o *creation) check(ctx context.Context, a *frame.App, c *connection, m *api.ManagedClusterMigration) error {
	q := preflight.Request{From: string(m.Spec.From), To: string(m.Spec.To), Placement: m.Spec.IncludedManagedClustersPlacementRef, AcceptEvictedWorks: o.acceptEvictedWorks}
	for _, name := range m.Spec.IncludedManagedClusters {
		q.Clusters = append(q.Clusters, string(name))
	}
	p, err := c.preflight(ctx, a, q, o.hubFlags)
	if err != nil {
		return err
	}
	if p.Decision != preflight.Ready {
		if err := clusterreport.WritePreflight(a.Console, a.Style(a.Streams.ErrOut, frame.Output{}), p); err != nil {
			return err
		}
	}
	if p.Decision == preflight.Blocked {
		return frame.Refuse(errors.New("the migration would fail: nothing was written; see the reasons above"))
	}
	if slices.ContainsFunc(p.Checks, func(c clusterreport.Check) bool { return c.Name == checkWorks }) {
		return frame.Refuse(errors.New("the ManifestWorks of the clusters are not known: nothing was written; give --from-context=CONTEXT, or accept the loss: --accept-evicted-works"))
	}
	return nil
}

// write creates the migration. It is one request, whose answer a user who interrupts waits for.
func (o *creation) write(ctx context.Context, a *frame.App, c *connection, m *api.ManagedClusterMigration) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := c.client.Create(bounded, m); err != nil {
		return c.refused(bounded, m, err)
	}
	a.Console.Printf("managedclustermigration %s created in namespace %s\n", m.Name, m.Namespace)
	created := migration{m, hub.New(m.Spec)}
	if !o.watch {
		printWatch(a, created)
		return c.print(a, o.output, created)
	}
	return c.followToEnd(ctx, a, o.output, created, statusCode)
}

// writeTimeout bounds the one request that writes.
const writeTimeout = 10 * time.Second

// refused says what the API server does not accept in a migration.
func (c *connection) refused(ctx context.Context, m *api.ManagedClusterMigration, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return c.explain(ctx, err)
	}
	var why []string
	for _, cause := range status.Status().Details.Causes {
		message := cause.Message
		if _, after, ok := strings.Cut(message, `"object": `); ok {
			message = after // the rule's own sentence
		}
		why = append(why, message)
	}
	return frame.Refuse(fmt.Errorf("managedclustermigration %s is invalid: %s; nothing was written", m.Name, strings.Join(why, "; ")))
}

// clustersOf names what a migration moves, in a question.
func clustersOf(m *api.ManagedClusterMigration) string {
	if placement := m.Spec.IncludedManagedClustersPlacementRef; placement != "" {
		return "the clusters of Placement " + placement
	}
	return render.Count(int64(len(m.Spec.IncludedManagedClusters)), "cluster", "clusters")
}
