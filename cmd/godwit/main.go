// Command godwit migrates Kubernetes objects. As kubectl-godwit it is kubectl's
// plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/root"
)

func main() { os.Exit(run(clock.RealClock{})) }

func run(now clock.PassiveClock) int {
	ctx, cancel := untilSignal(context.Background())
	defer cancel()
	frame.LogLibraries(os.Stderr)
	return root.Main(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, now)
}

// untilSignal cancels the context at the first signal, so that the command ends in order; the second signal ends the
// process. Unlike signal.NotifyContext, it stops handling signals before the context ends, and so before the command
// prints that it ends.
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
