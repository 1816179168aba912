package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

func main() {
	b := bench{began: time.Now(), unavailable: map[string]string{}}
	flag.IntVar(&b.objects, "n", 3000, "objects")
	flag.IntVar(&b.faultObjects, "fault-objects", 300, "objects under each fault; at most n")
	flag.IntVar(&b.rounds, "rounds", 3, "turns of each contestant")
	flag.DurationVar(&b.limit, "limit", 30*time.Second, "time for one turn of a contestant; its speed is that over the objects that it has migrated by then")
	faults := flag.String("faults", "denied,stopped,killed", "faults to play; empty: none")
	flag.StringVar(&b.godwit, "godwit", "../bin/godwit", "the command to measure")
	flag.StringVar(&b.servers, "servers", "../bin/controlplane", "folder with kube-controller-manager")
	flag.StringVar(&b.out, "out", "out/peers.json", "where the result goes")
	flag.StringVar(&b.folder, "parts", "", "folder of the rounds and faults that were measured, which are not measured again; empty: out/peers-N")
	flag.DurationVar(&b.duration, "for", 0, "begin no round and no fault after this time; run the same command to continue; 0: measure all")
	flag.Parse()
	b.faultObjects = min(b.faultObjects, b.objects)
	b.faults = slices.DeleteFunc(strings.Split(*faults, ","), func(f string) bool { return f == "" })
	if b.folder == "" {
		b.folder = fmt.Sprintf("out/peers-%d", b.objects)
	}
	// A client would close its connections to a server that is stopped for longer than a minute.
	_ = os.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "0")
	os.Exit(measure.Main(context.Background(), b.main))
}

func (b *bench) main(ctx context.Context) error {
	if err := b.load(); err != nil {
		return err
	}
	var failed error
	if len(b.missing()) > 0 {
		failed = b.measure(ctx) // what was measured before is kept
	}
	r := b.collect()
	r.rate()
	if err := errors.Join(failed, measure.Write(io.Discard, b.out, r)); err != nil {
		return err
	}
	r.write(os.Stdout)
	if failed := r.failures(); len(failed) > 0 {
		return fmt.Errorf("%d results are missing, see above: %v; to measure a round or a fault again, delete its file in %s", len(failed), failed, b.folder)
	}
	return nil
}

// measure measures the parts that are missing.
func (b *bench) measure(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "godwit-bench-peers-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	programs := b.build(ctx)
	measure.Say("starting the control plane")
	if b.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.plane.Stop()) }()
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

// build compiles the peers. One that does not build is a line of the result.
func (b *bench) build(ctx context.Context) (p programs) {
	missing := func(cause error, names ...string) {
		for _, name := range names {
			b.unavailable[name] = cause.Error()
			measure.Say("%s is left out: %v", name, cause)
		}
	}
	var err error
	measure.Say("building the peers: minutes with an empty build cache")
	if p.clusterAPI, err = build(ctx, b.dir, "clusterapi"); err != nil {
		missing(err, "capi", "capi-shipped")
	}
	if p.ksvm, err = build(ctx, b.dir, "ksvm"); err != nil {
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

// prepare makes the user that every contestant is, and the objects.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.godwit, err = filepath.Abs(b.godwit); err != nil {
		return err
	}
	if b.user, err = account.AddUser(ctx, b.plane, account.Godwit); err != nil {
		return err
	}
	b.kubeconfig = filepath.Join(b.dir, "kubeconfig")
	if err := controlplane.WriteKubeconfig(b.kubeconfig, b.user); err != nil {
		return err
	}
	if b.clients, err = dynamic.NewForConfig(b.plane.Config()); err != nil {
		return err
	}
	requests, err := account.CountRequests(ctx, b.plane.Config())
	if err != nil {
		return err
	}
	if b.meter, err = newMeter(requests); err != nil {
		return err
	}
	versions, err := b.versions(ctx)
	if err != nil {
		return err
	}
	b.environment = newEnvironment(versions)
	if err := b.checkVersions(); err != nil {
		return err
	}
	if !slices.ContainsFunc(b.missing(), func(name string) bool { _, is := roundOf(name); return is }) {
		return nil
	}
	if b.resource, err = widget.New(ctx, b.plane, "peers", b.objects); err != nil {
		return err
	}
	if err := b.resource.WarmUp(ctx); err != nil {
		return err
	}
	measure.Say("measuring what the servers use when idle")
	if err := widget.Age(ctx); err != nil { // until they have forgotten the passes
		return err
	}
	return b.meter.measureIdle(ctx)
}

// contestants are those whose program is there.
func (b *bench) contestants(ctx context.Context, p programs) ([]contestant, error) {
	all := []contestant{b.ours("Patch", "0s"), b.ours("Update", "0s"), b.ours("Apply", "0s")}
	if p.clusterAPI != "" {
		shipped := clusterAPI{label: "capi-shipped", binary: p.clusterAPI, kubeconfig: b.kubeconfig, dir: b.dir, clients: b.clients}
		unthrottled := shipped
		unthrottled.label, unthrottled.qps = "capi", -1
		all = append(all, unthrottled, shipped)
	}
	if b.unavailable["intree"] == "" {
		all = append(all, inTree{binary: p.controllerManager, kubeconfig: b.kubeconfig, dir: b.dir, clients: b.clients})
	}
	if p.ksvm != "" {
		if err := installKSVM(ctx, b.plane); err != nil {
			return nil, err
		}
		all = append(all, ksvm{binary: p.ksvm, kubeconfig: b.kubeconfig, dir: b.dir, clients: b.clients})
	}
	return all, nil
}

func (b *bench) ours(write, settle string) godwit {
	return godwit{binary: b.godwit, kubeconfig: b.kubeconfig, dir: b.dir, write: write, settle: settle}
}

// measureFault plays a fault with one contestant of each kind, and with Godwit as it is by default.
func (b *bench) measureFault(ctx context.Context, fault string, contestants []contestant) error {
	others := slices.DeleteFunc(slices.Clone(contestants), func(c contestant) bool {
		_, ours := c.(godwit)
		return ours || c.name() == "capi-shipped"
	})
	with := func(settle string) []contestant { return append([]contestant{b.ours("Patch", settle)}, others...) }
	switch fault {
	case "denied":
		return b.measureDenied(ctx, with("0s"))
	case "stopped":
		return b.measureStopped(ctx, with(""))
	case "killed":
		return b.measureKilled(ctx, with("0s"))
	}
	return fmt.Errorf("there is no fault %q", fault)
}

// versions of everything that is compared.
func (b *bench) versions(ctx context.Context) (map[string]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(b.plane.Config())
	if err != nil {
		return nil, err
	}
	server, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	status, err := b.plane.Etcd().Status(ctx, b.plane.EtcdEndpoint())
	if err != nil {
		return nil, err
	}
	v := map[string]string{"kubernetes": server.GitVersion, "etcd": status.Version}
	for module, path := range map[string]string{"clusterapi": "sigs.k8s.io/cluster-api", "ksvm": "sigs.k8s.io/kube-storage-version-migrator"} {
		if v[path], err = moduleVersion(ctx, module, path); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// moduleVersion is the version of a module that a program of tools/peers is built from.
func moduleVersion(ctx context.Context, program, module string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	command.Dir = filepath.Join(peerModules, program)
	command.Env = append(os.Environ(), "GOWORK=off")
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("read %s/go.mod: %w", command.Dir, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return "", fmt.Errorf("read %s/go.mod: %w", command.Dir, err)
	}
	for _, r := range file.Require {
		if r.Path == module {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod does not require %s", command.Dir, module)
}
