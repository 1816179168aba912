package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	namespace = "default"
	// perMigration is the number of clusters in each migration of the demo.
	perMigration = 3
	// tick is the time between two actions of a simulated cluster. A shorter tick keeps both API servers busy.
	tick = time.Second
)

// Run shows the story and returns after it has removed everything. It returns an error if a claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Move managed clusters between hubs of Open Cluster Management.")}
	d.Teller.Chapter("Two hubs, a broker, Godwit's manager and two agents")
	if err := d.openHubs(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.closeHubs()) }()
	if err := stage.Run(ctx, d.begin, d.enroll, d.migrateClusters, d.partial, d.abort); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get managedclustermigrations", "kubectl --context="+targetHub+" get managedclusters", d.Program.CommandLine("cluster", "status", "-A"))
}

// begin starts the manager and the agents, and creates the clusters.
func (d *demo) begin(ctx context.Context) error {
	if err := d.startBroker(); err != nil {
		return err
	}
	if err := d.importHubs(ctx); err != nil {
		return err
	}
	if err := d.startManager(ctx); err != nil {
		return err
	}
	for i := range 3 * perMigration {
		k := &klusterlet.Klusterlet{Name: fmt.Sprintf("cluster%d", i+1), Tick: tick}
		switch {
		case i == 2*perMigration-1:
			k.Denied = "a policy of " + targetHub + " denies requests of " + k.Name
		case i >= 2*perMigration:
			k.Unreachable = true
		}
		if err := d.addSite(ctx, k); err != nil {
			return err
		}
	}
	d.Teller.Paragraph("%s is the global hub as well, and has %d simulated clusters. %s is at %s.", sourceHub, len(d.sites), targetHub, d.Contexts[targetHub].Host)
	return d.awaitSites(ctx)
}

// enroll enrolls both hubs, so that the manager accepts the messages of their agents.
func (d *demo) enroll(ctx context.Context) error {
	d.Teller.Chapter("The hubs are enrolled by the keys of their agents")
	for _, hub := range []string{sourceHub, targetHub} {
		if _, err := d.Program.Show(ctx, stage.ExitOK, "cluster", "enroll", hub, "--hub-context="+hub, "--yes"); err != nil {
			return err
		}
	}
	return nil
}

// sitesOf returns the clusters of the n-th migration.
func (d *demo) sitesOf(n int) (sites []*site, names []string) {
	sites = d.sites[n*perMigration : (n+1)*perMigration]
	for _, s := range sites {
		names = append(names, s.Name)
	}
	return sites, names
}

// hubsFlags returns the flags of a command that reads both hubs.
func hubsFlags() []string {
	return []string{"--from=" + sourceHub, "--to=" + targetHub, "--to-context=" + targetHub}
}

// migrateClusters shows a preflight, and a migration that moves all of its clusters.
func (d *demo) migrateClusters(ctx context.Context) error {
	d.Teller.Chapter("A migration moves clusters")
	d.Teller.Paragraph("The preflight changes nothing. The manager alone knows the heartbeats of the agents.")
	sites, names := d.sitesOf(0)
	if _, err := d.Program.Show(ctx, stage.ExitPending, append(append([]string{"cluster", "preflight"}, hubsFlags()...), names...)...); err != nil {
		return err
	}
	if err := d.claimTally(ctx, sites, 0); err != nil {
		return err
	}
	if _, err := d.start(ctx, stage.ExitOK, "first", names, "--watch"); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, perMigration)
}

func (d *demo) start(ctx context.Context, code int, name string, clusters []string, more ...string) (string, error) {
	args := append(append([]string{"cluster", "start", name}, clusters...), hubsFlags()...)
	return d.Program.Show(ctx, code, append(append(args, "--yes"), more...)...)
}

// partial shows a migration of which one cluster is refused by the target hub.
func (d *demo) partial(ctx context.Context) error {
	d.Teller.Chapter("The target hub refuses one cluster, which returns")
	sites, names := d.sitesOf(1)
	refused := sites[perMigration-1]
	d.Teller.Paragraph("%s: its CertificateSigningRequest is denied.", refused.Denied)
	printed, err := d.start(ctx, stage.ExitPartial, "second", names, "--watch")
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "SigningRequestDenied") {
		return stage.Wrong("`cluster run` does not say why %s has not moved", refused.Name)
	}
	return d.claimTally(ctx, sites, perMigration-1)
}

// abort shows how an abort rolls back a migration that waits for ever.
func (d *demo) abort(ctx context.Context) error {
	d.Teller.Chapter("A migration is aborted, and everything is as before")
	sites, names := d.sitesOf(2)
	d.Teller.Paragraph("These clusters can't reach %s, so that the migration waits for them.", targetHub)
	if _, err := d.start(ctx, stage.ExitOK, "third", names); err != nil {
		return err
	}
	err := stage.Await(ctx, "phase Registering", func(ctx context.Context) (bool, error) {
		m := &api.ManagedClusterMigration{}
		err := d.hubs[sourceHub].Get(ctx, client.ObjectKey{Namespace: namespace, Name: "third"}, m)
		if m.Status.CompletionTime != nil {
			return false, stage.Wrong("the migration of clusters that can't reach %s has ended in %s", targetHub, m.Status.Phase)
		}
		return m.Status.Phase == api.PhaseRegistering, err
	})
	if err != nil {
		return err
	}
	if _, err := d.Program.Show(ctx, stage.ExitOK, "cluster", "abort", "third", "--yes", "--watch"); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, 0)
}

// sum prints the last line. It counts its numbers again.
func (d *demo) sum(ctx context.Context) error {
	t, err := d.count(ctx, d.sites)
	if err != nil {
		return err
	}
	moved := 2*perMigration - 1
	stayed := len(d.sites) - moved
	if want := (tally{moved, stayed, moved * objectsOfSite, stayed * objectsOfSite, 0}); t != want {
		return stage.Wrong("the hubs have %+v, and it should be %+v", t, want)
	}
	d.Teller.Line("\ndemo: %d clusters, %d moved with %d objects, %d back with %d objects, each accepted by one hub, %d objects left behind",
		len(d.sites), t.moved, t.onTarget, t.stayed, t.onSource, t.left)
	return nil
}
