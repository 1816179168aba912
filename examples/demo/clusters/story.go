package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	// perMigration is the number of clusters in each migration of the demo.
	perMigration = 3
	// tick is the time between two actions of a simulated cluster. A shorter tick keeps both API servers busy.
	tick = time.Second
)

// Run shows the story and returns after it has removed everything. It returns an error if a claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Move managed clusters between hubs of Open Cluster Management.")}
	d.Teller.Chapter("Two hubs, and nothing of Godwit on them")
	if err := d.openHubs(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.closeHubs()) }()
	if err := stage.Run(ctx, d.begin, d.migrateClusters, d.partial, d.abort); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get managedclusters", "kubectl --context="+targetHub+" get managedclusters", d.Program.CommandLine("cluster", "status", "--from-context="+sourceHub))
}

// begin creates the clusters.
func (d *demo) begin(ctx context.Context) error {
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
	d.Teller.Paragraph("%s has %d simulated clusters. %s is at %s.", sourceHub, len(d.sites), targetHub, d.Contexts[targetHub].Host)
	return d.awaitSites(ctx)
}

// sitesOf returns the clusters of the n-th migration.
func (d *demo) sitesOf(n int) (sites []*site, names []string) {
	sites = d.sites[n*perMigration : (n+1)*perMigration]
	for _, s := range sites {
		names = append(names, s.Name)
	}
	return sites, names
}

// contexts are the flags of each command.
func contexts() []string { return []string{"--from-context=" + sourceHub, "--to-context=" + targetHub} }

// migrateClusters shows what a move would do, and a move of which all clusters arrive.
func (d *demo) migrateClusters(ctx context.Context) error {
	d.Teller.Chapter("Clusters move between the hubs of two contexts")
	d.Teller.Paragraph("The plan changes nothing.")
	sites, names := d.sitesOf(0)
	if _, err := d.Program.Show(ctx, stage.ExitOK, append(append([]string{"cluster", "plan"}, names...), contexts()...)...); err != nil {
		return err
	}
	if err := d.claimTally(ctx, sites, 0); err != nil {
		return err
	}
	if _, err := d.start(ctx, stage.ExitOK, names); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, perMigration)
}

func (d *demo) start(ctx context.Context, code int, clusters []string, more ...string) (string, error) {
	args := append(append([]string{"cluster", "move"}, clusters...), contexts()...)
	return d.Program.Show(ctx, code, append(append(args, "--yes"), more...)...)
}

// partial shows a move of which one cluster is refused by the target hub.
func (d *demo) partial(ctx context.Context) error {
	d.Teller.Chapter("The target hub refuses one cluster, which returns")
	sites, names := d.sitesOf(1)
	refused := sites[perMigration-1]
	d.Teller.Paragraph("%s: its CertificateSigningRequest is denied.", refused.Denied)
	printed, err := d.start(ctx, stage.ExitPartial, names)
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "SigningRequestDenied") {
		return stage.Wrong("`cluster move` does not say why %s has not moved", refused.Name)
	}
	return d.claimTally(ctx, sites, perMigration-1)
}

// abort shows a move that is stopped in its middle, and how its clusters return.
func (d *demo) abort(ctx context.Context) error {
	d.Teller.Chapter("A move is stopped in its middle, and everything is as before")
	sites, names := d.sitesOf(2)
	d.Teller.Paragraph("These clusters can't reach %s, so that the move waits for them, until --timeout ends the command.", targetHub)
	printed, err := d.start(ctx, exitTimedOut, names, "--timeout=25s")
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "Registering") {
		return stage.Wrong("the move of clusters that can't reach %s has not come to phase Registering", targetHub)
	}
	if _, err := d.Program.Show(ctx, stage.ExitOK, append([]string{"cluster", "rollback", names[0] + "-move-1", "--yes"}, contexts()...)...); err != nil {
		return err
	}
	return d.claimTally(ctx, sites, 0)
}

// exitTimedOut is the exit code of a command that --timeout has ended.
const exitTimedOut = 124

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
