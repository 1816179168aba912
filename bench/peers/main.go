package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

func main() {
	b := &bench{began: time.Now(), unavailable: map[string]string{}}
	flag.IntVar(&b.Objects, "n", 3000, "objects")
	flag.IntVar(&b.faultObjects, "fault-objects", 300, "objects under each fault; at most n")
	flag.IntVar(&b.Rounds, "rounds", 3, "turns of each contestant")
	flag.DurationVar(&b.limit, "limit", 30*time.Second, "time for one turn of a contestant; its speed is that over the objects that it has migrated by then")
	flag.StringVar(&b.faultList, "faults", "denied,stopped,killed", "faults to inject; empty: none")
	flag.StringVar(&b.servers, "servers", "../bin/controlplane", "folder with kube-controller-manager")
	flag.StringVar(&b.folder, "parts", "", "folder of the rounds and faults that were measured, which are not measured again; empty: out/peers-N")
	flag.DurationVar(&b.duration, "for", 0, "begin no round and no fault after this time; run the same command to continue; 0: measure all")
	// Otherwise a client would close its connections to a server that is stopped for longer than a minute.
	_ = os.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "0")
	frame.Main("peers", b)
}

// Measure implements [frame.Benchmark].
func (b *bench) Measure(ctx context.Context, f *frame.Bench) error {
	b.frame = f
	b.faults = slices.DeleteFunc(strings.Split(b.faultList, ","), func(f string) bool { return f == "" })
	b.faultObjects = min(b.faultObjects, b.Objects)
	if b.folder == "" {
		b.folder = fmt.Sprintf("out/peers-%d", b.Objects)
	}
	if err := b.load(); err != nil {
		return err
	}
	if len(b.missing()) > 0 {
		if err := b.measure(ctx); err != nil { // the files of finished parts are kept
			return err
		}
	}
	b.collect()
	b.Rate()
	if failed := b.Failures(); len(failed) > 0 {
		return fmt.Errorf("%w: %d contestants failed: %v; to measure a round or a fault again, delete its file in %s", frame.ErrIncomplete, len(failed), failed, b.folder)
	}
	return nil
}

// Summary implements [frame.Benchmark].
func (b *bench) Summary() string {
	var text strings.Builder
	writeTables(&text, &b.Peers)
	return text.String() + summaryLine(&b.Peers)
}

// measure measures the parts that are missing.
func (b *bench) measure(ctx context.Context) error {
	programs := b.build(ctx)
	frame.Logf("starting the control plane")
	if err := b.prepare(ctx); err != nil {
		return err
	}
	contestants, err := b.contestants(ctx, programs)
	if err != nil {
		return err
	}
	for _, name := range b.missing() {
		if b.timeIsOver() {
			return nil
		}
		b.begin()
		if err := b.measurePart(ctx, name, contestants); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := b.keep(name); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measurePart(ctx context.Context, name string, contestants []contestant) error {
	if round, is := roundOf(name); is {
		return b.measureRound(ctx, contestants, round)
	}
	return b.measureFault(ctx, faultOf(name), contestants)
}

// programs are the paths of the contestants' programs.
type programs struct{ clusterAPI, ksvm, controllerManager string }

// build compiles the peers. The result has a line for a peer that does not compile.
func (b *bench) build(ctx context.Context) (p programs) {
	missing := func(cause error, names ...string) {
		for _, name := range names {
			b.unavailable[name] = cause.Error()
			frame.Logf("%s is left out: %v", name, cause)
		}
	}
	var err error
	frame.Logf("building the peers: minutes with an empty build cache")
	if p.clusterAPI, err = build(ctx, b.frame.Dir, "clusterapi"); err != nil {
		missing(err, "capi", "capi-shipped")
	}
	if p.ksvm, err = build(ctx, b.frame.Dir, "ksvm"); err != nil {
		missing(err, "ksvm")
	}
	servers := b.servers
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		servers = assets
	}
	if p.controllerManager, err = filepath.Abs(filepath.Join(servers, "kube-controller-manager")); err == nil {
		_, err = os.Stat(p.controllerManager)
	}
	if err != nil {
		missing(err, "intree")
	}
	return p
}

// prepare starts the control plane, and creates the objects if a round is missing.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.cluster, err = b.frame.StartCluster(ctx, controlplane.Options{}); err != nil {
		return err
	}
	if b.clients, err = dynamic.NewForConfig(b.cluster.Config()); err != nil {
		return err
	}
	if b.meter, err = newMeter(b.cluster.Requests); err != nil {
		return err
	}
	if b.environment, err = readEnvironment(ctx, b.cluster); err != nil {
		return err
	}
	if err := b.checkVersions(); err != nil {
		return err
	}
	if !slices.ContainsFunc(b.missing(), func(name string) bool { _, is := roundOf(name); return is }) {
		return nil
	}
	if b.resource, err = widget.New(ctx, b.cluster, "peers", b.Objects); err != nil {
		return err
	}
	if err := b.resource.WarmUp(ctx); err != nil {
		return err
	}
	frame.Logf("measuring what the servers use when idle")
	if err := widget.Age(ctx); err != nil { // work after the warm-up must not count as idle
		return err
	}
	return b.meter.measureIdle(ctx)
}

// contestants returns the contestants whose program compiled.
func (b *bench) contestants(ctx context.Context, p programs) ([]contestant, error) {
	all := []contestant{b.godwit("Patch", "0s"), b.godwit("Update", "0s"), b.godwit("Apply", "0s")}
	if p.clusterAPI != "" {
		all = append(all, clusterAPI{env: b.env, label: "capi", binary: p.clusterAPI, qps: -1},
			clusterAPI{env: b.env, label: "capi-shipped", binary: p.clusterAPI})
	}
	if b.unavailable["intree"] == "" {
		all = append(all, inTree{env: b.env, binary: p.controllerManager})
	}
	if p.ksvm != "" {
		if err := installKSVM(ctx, b.cluster); err != nil {
			return nil, err
		}
		all = append(all, ksvm{env: b.env, binary: p.ksvm})
	}
	return all, nil
}

func (b *bench) godwit(write, settle string) godwit {
	return godwit{env: b.env, write: write, settle: settle}
}

// measureFault injects a fault with one contestant of each kind, and with Godwit's default write.
func (b *bench) measureFault(ctx context.Context, fault string, contestants []contestant) error {
	others := slices.DeleteFunc(slices.Clone(contestants), func(c contestant) bool {
		_, ours := c.(godwit)
		return ours || c.name() == "capi-shipped"
	})
	with := func(settle string) []contestant { return append([]contestant{b.godwit("Patch", settle)}, others...) }
	switch fault {
	case "denied":
		return b.measureDenied(ctx, with("0s"))
	case "stopped":
		return b.measureStopped(ctx, with(""))
	case "killed":
		return b.measureKilled(ctx, with("0s"))
	}
	return fmt.Errorf("unknown fault %q", fault)
}
