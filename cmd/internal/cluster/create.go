package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	change frame.ChangeFlags
	watch  bool
	output frame.Output
}

func (o *creation) addTo(a *frame.App, c *cobra.Command) {
	o.hubFlags.addTo(a, c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunServer)
	frame.AddWatch(c, &o.watch)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, clusterreport.NoMigration("", ""))
}

// checkName refuses a name that the API server would refuse.
func checkName(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return frame.Usagef("%q is not a valid migration name: %s", name, wrong[0])
	}
	return nil
}

// planned is a migration to create.
type planned struct {
	*creation
	app        *frame.App
	connection *connection
	migration  *api.ManagedClusterMigration
	err        error
}

// plan runs the preflight of a migration. In a dry run, the API server checks the migration too.
func (o *creation) plan(ctx context.Context, a *frame.App, c *connection, m *api.ManagedClusterMigration) (frame.Change, error) {
	if err := c.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	o.choose(&m.Spec)
	err := c.client.Get(ctx, client.ObjectKeyFromObject(m), &api.ManagedClusterMigration{})
	if err == nil {
		return nil, frame.Refuse(fmt.Errorf("%s %s exists in namespace %s: nothing was written; give another name, or see it: %s",
			c.kind(), m.Name, m.Namespace, c.hint(a, "status "+m.Name)))
	}
	if !apierrors.IsNotFound(err) {
		return nil, c.explain(ctx, err)
	}
	if err := o.check(ctx, a, c, m); err != nil {
		return nil, err
	}
	if o.change.Writes() {
		return &planned{creation: o, app: a, connection: c, migration: m}, nil
	}
	if c.pair == nil {
		if err := c.client.Create(ctx, m, client.DryRunAll); err != nil {
			return nil, c.explainRefusal(ctx, m, err)
		}
	}
	a.Console.Printf("dry run: nothing was written\n")
	return nil, c.printMigration(a, o.output, migration{m, hub.New(m.Spec)})
}

// Question implements frame.Change.
func (p *planned) Question() (string, error) {
	m := p.migration
	if two := p.connection.pair; two != nil {
		return fmt.Sprintf("\nMove %s from %s to %s, which clusters reach at %s?\nThis command carries the move out. Its state is in namespace %s of the source hub.",
			clustersOf(m), p.connection.Where(), two.to.Where(), two.to.address.URL, m.Namespace), nil
	}
	return fmt.Sprintf("\nMove %s from %s to %s, by managedclustermigration %s in namespace %s on %s?", clustersOf(m), m.Spec.From, m.Spec.To, m.Name, m.Namespace, p.connection.Where()), nil
}

// Run implements frame.Change. It sends one request, and waits for the answer even after an interruption.
func (p *planned) Run(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if p.err = p.connection.prepareDirect(bounded, p.migration.Namespace); p.err != nil {
		return
	}
	if err := p.connection.client.Create(bounded, p.migration); err != nil {
		p.err = p.connection.explainRefusal(bounded, p.migration, err)
	}
}

// End implements frame.Change.
func (p *planned) End(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	created := migration{p.migration, hub.New(p.migration.Spec)}
	p.app.Console.Printf("%s %s created in namespace %s\n", p.connection.kind(), created.Name, created.Namespace)
	return p.connection.end(ctx, p.app, created, ending{p.output, p.watch, statusCode})
}

// check prints the preflight, and refuses to create a blocked migration.
func (o *creation) check(ctx context.Context, a *frame.App, c *connection, m *api.ManagedClusterMigration) error {
	q := preflight.Request{
		From: string(m.Spec.From), To: string(m.Spec.To), Placement: m.Spec.IncludedManagedClustersPlacementRef,
		OnEvictedWorks: m.Spec.EvictedWorks(), OnUserObjects: m.Spec.UserObjects(),
	}
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
	return nil
}

// explainRefusal returns why the API server refuses a migration.
func (c *connection) explainRefusal(ctx context.Context, m *api.ManagedClusterMigration, err error) error {
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

// clustersOf returns the clusters of a migration in words, for a question.
func clustersOf(m *api.ManagedClusterMigration) string {
	if placement := m.Spec.IncludedManagedClustersPlacementRef; placement != "" {
		return "the clusters of Placement " + placement
	}
	return render.Count(int64(len(m.Spec.IncludedManagedClusters)), "cluster", "clusters")
}
