package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	clustersNamespace = "default"
	// perMigration is how many clusters each migration of the demo has.
	perMigration = 3
	// tick is how often a simulated cluster acts. Shorter ones keep both API servers busy.
	tick = time.Second
)

// RunClusters shows the demo of managed clusters and returns after it has removed everything. It returns an
// error if a claim does not hold.
func RunClusters(ctx context.Context, o Options) (err error) {
	d := &clustersDemo{stage: stage{teller: &teller{out: o.Out, began: time.Now()}}}
	d.teller.line("Move managed clusters between hubs of Open Cluster Management. The demo runs on this machine only.")
	d.teller.chapter("Two hubs, a broker, Godwit's manager and two agents")
	if err := d.openHubs(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.closeHubs()) }()
	for _, chapter := range []func(context.Context) error{d.begin, d.enroll, d.move, d.partial, d.abort} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.end(ctx, o, d.sum, "kubectl get managedclustermigrations", "kubectl --context="+targetHub+" get managedclusters", d.program.typed+" cluster status -A")
}

// begin starts the manager and the agents, and creates the clusters.
func (d *clustersDemo) begin(ctx context.Context) error {
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
	d.teller.say("%s is the global hub as well, and has %d simulated clusters. %s is at %s.", sourceHub, len(d.sites), targetHub, d.contexts[targetHub].Host)
	return d.awaitSites(ctx)
}

// enroll makes the agents known to the manager, and looks at what a migration would do.
func (d *clustersDemo) enroll(ctx context.Context) error {
	d.teller.chapter("The hubs are enrolled by the keys of their agents")
	for _, hub := range []string{sourceHub, targetHub} {
		if _, err := d.program.show(ctx, exitOK, "cluster", "enroll", hub, "--hub-context="+hub, "--yes"); err != nil {
			return err
		}
	}
	return nil
}

// of are the clusters of the n-th migration.
func (d *clustersDemo) of(n int) (sites []*site, names []string) {
	sites = d.sites[n*perMigration : (n+1)*perMigration]
	for _, s := range sites {
		names = append(names, s.Name)
	}
	return sites, names
}

// hubsFlags are those of a command that looks at both hubs.
func hubsFlags() []string {
	return []string{"--from=" + sourceHub, "--to=" + targetHub, "--to-context=" + targetHub}
}

// move moves clusters.
func (d *clustersDemo) move(ctx context.Context) error {
	d.teller.chapter("A migration moves clusters")
	d.teller.say("The preflight changes nothing. The manager alone knows the heartbeats of the agents.")
	sites, names := d.of(0)
	if _, err := d.program.show(ctx, exitPending, append(append([]string{"cluster", "preflight"}, hubsFlags()...), names...)...); err != nil {
		return err
	}
	if err := d.claimTally(ctx, sites, 0); err != nil {
		return err
	}
	if _, err := d.start(ctx, exitOK, "first", names, "--watch"); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, perMigration)
}

func (d *clustersDemo) start(ctx context.Context, code int, name string, clusters []string, more ...string) (string, error) {
	args := append(append([]string{"cluster", "start", name}, clusters...), hubsFlags()...)
	return d.program.show(ctx, code, append(append(args, "--yes"), more...)...)
}

// partial moves clusters of which the target hub refuses one.
func (d *clustersDemo) partial(ctx context.Context) error {
	d.teller.chapter("The target hub refuses one cluster, which returns")
	sites, names := d.of(1)
	refused := sites[perMigration-1]
	d.teller.say("%s: its CertificateSigningRequest is denied.", refused.Denied)
	printed, err := d.start(ctx, exitPartial, "second", names, "--watch")
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "SigningRequestDenied") {
		return wrong("`cluster start` does not say why %s has not moved", refused.Name)
	}
	return d.claimTally(ctx, sites, perMigration-1)
}

// abort rolls a migration back that can't end.
func (d *clustersDemo) abort(ctx context.Context) error {
	d.teller.chapter("A migration is aborted, and everything is as before")
	sites, names := d.of(2)
	d.teller.say("These clusters can't reach %s, so that the migration waits for them.", targetHub)
	if _, err := d.start(ctx, exitOK, "third", names); err != nil {
		return err
	}
	err := d.until(ctx, "phase Registering", func() (bool, error) {
		m := &api.ManagedClusterMigration{}
		err := d.hubs[sourceHub].Get(ctx, client.ObjectKey{Namespace: clustersNamespace, Name: "third"}, m)
		if m.Status.CompletionTime != nil {
			return false, wrong("the migration of clusters that can't reach %s has ended in %s", targetHub, m.Status.Phase)
		}
		return m.Status.Phase == api.PhaseRegistering, err
	})
	if err != nil {
		return err
	}
	if _, err := d.program.show(ctx, exitOK, "cluster", "abort", "third", "--yes", "--watch"); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, 0)
}

// sum prints the last line. It counts its numbers again.
func (d *clustersDemo) sum(ctx context.Context) error {
	t, err := d.count(ctx, d.sites)
	if err != nil {
		return err
	}
	moved := 2*perMigration - 1
	stayed := len(d.sites) - moved
	if want := (tally{moved, stayed, moved * objectsOfSite, stayed * objectsOfSite, 0}); t != want {
		return wrong("the hubs have %+v, and it should be %+v", t, want)
	}
	d.teller.line("\ndemo: %d clusters, %d moved with %d objects, %d back with %d objects, each accepted by one hub, %d objects left behind",
		len(d.sites), t.moved, t.onTarget, t.stayed, t.onSource, t.left)
	return nil
}
