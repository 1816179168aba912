package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/examples/demo/clusters"
	"github.com/godwit-dev/godwit/examples/demo/names"
	"github.com/godwit-dev/godwit/examples/demo/objects"
	"github.com/godwit-dev/godwit/examples/demo/revisions"
	"github.com/godwit-dev/godwit/examples/demo/stage"
)

// Exit codes, as those of godwit.
const (
	exitError       = 2
	exitInterrupted = 130
)

const usage = `Show godwit on control planes of its own; connect to no other cluster.

Usage:
  make demo DEMO_FLAGS="[STORY] [--keep] [--write-kubeconfig=FILE]"

Without a STORY: start etcd and kube-apiserver, install the CRDs of the Gateway API, create 2,000
objects and upgrade the CRDs. Remove the old version, which the API server refuses. Then plan, run
with one object that a policy denies, allow it, resume, verify in etcd, and remove the old version.

Stories:
  revisions   Create virtual machines and a snapshot as KubeVirt v0.56 and later releases left them.
              Plan, run, show which ControllerRevisions the run deferred or blocked and why, wait for
              the end of the retention, and remove the old versions from the CRDs.
  names       Start a job service and a Crossplane provider for it. Import databases that exist in the
              service, show one that another client changes, and give the provider full management.
              Then rename the external names that an earlier release of the provider wrote, with a
              proof for each, and roll them back.
  clusters    Start two hubs and simulated clusters. Look at what a move between the two would do, and
              move clusters. Then move some of which one is refused by the target hub and returns, and
              stop a move in its middle and return its clusters. The simulated clusters play the agents
              of Open Cluster Management and the import controller of each hub; make e2e-hub moves
              clusters with their own agents.

Flags:
`

const notes = `
The demo reads no kubeconfig. At its end, it stops all processes and removes all files but compiled
programs. It needs the servers that make controlplane compiles, and the go command, which compiles the
programs and downloads the CRDs.
`

var stories = map[string]func(context.Context, stage.Options) error{
	"": objects.Run, "revisions": revisions.Run, "names": names.Run, "clusters": clusters.Run,
}

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	// The libraries log failed requests. The demo prints these errors itself.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	o := stage.Options{Out: out, ErrOut: errOut}
	story, err := parse(args, &o)
	if err == nil {
		err = stories[story](ctx, o)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil && err != nil:
		_, _ = fmt.Fprintln(errOut, "interrupted")
		return exitInterrupted
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return exitError
	}
	return 0
}

// parse reads the name of a story and the flags, in any order.
func parse(args []string, o *stage.Options) (story string, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error
	flags.BoolVar(&o.Keep, "keep", false, "keep the cluster running until you press Ctrl-C, and write a kubeconfig for it")
	flags.StringVar(&o.Kubeconfig, "write-kubeconfig", "godwit-demo.kubeconfig", "`file` that --keep writes the kubeconfig to, and removes at the end")
	for rest := args; ; {
		if err := flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(o.Out, usage)
			flags.SetOutput(o.Out)
			flags.PrintDefaults()
			_, _ = fmt.Fprint(o.Out, notes)
			return "", err
		} else if err != nil {
			return "", fmt.Errorf("%w: the demo starts its own control plane; see --help", err)
		}
		if flags.NArg() == 0 {
			return story, nil
		}
		name := flags.Arg(0)
		if stories[name] == nil || name == "" || story != "" {
			return "", fmt.Errorf("the demo shows one of the stories revisions, names and clusters, but got %q; see --help", strings.Join(args, " "))
		}
		story, rest = name, flags.Args()[1:]
	}
}

// untilSignal returns a context that the first signal ends, so that the demo removes everything. The second signal ends the process.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx, cancel
}
