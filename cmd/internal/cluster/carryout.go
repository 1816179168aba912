package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/internal/quote"
)

// carryOut carries a migration out until it has settled, prints its progress and its document, and returns the exit code
// of code.
func (c *connection) carryOut(ctx context.Context, a *frame.App, f frame.Output, m migration, code func(clusterreport.Migration) frame.Code) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- c.runDirect(working, a, m)
		stop()
	}()
	c.followWhile(working, a, m)
	why := <-ended
	var held *direct.HeldError
	switch {
	case errors.As(why, &held):
		a.Console.Printf("%v; its progress follows\n", why)
		return c.followToEnd(ctx, a, f, m, code)
	case ctx.Err() == nil && why != nil:
		return c.explain(ctx, why)
	}
	return c.endDirect(ctx, a, f, m, code)
}

// followWhile prints the progress of a migration until it has settled or the context ends. A read that fails is tried again: the
// migration continues.
func (c *connection) followWhile(ctx context.Context, a *frame.App, m migration) {
	for {
		next, err := c.followRequest(ctx, m)
		if err == nil {
			_, err = c.follow(ctx, a, next)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		a.Console.Problem(c.explain(ctx, err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
	}
}

// endDirect prints the document of a migration as it is now, also after an interruption.
func (c *connection) endDirect(ctx context.Context, a *frame.App, f frame.Output, m migration, code func(clusterreport.Migration) frame.Code) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	m, err := c.find(bounded, m.Name)
	if err != nil {
		return err
	}
	if err := c.printMigration(a, f, m); err != nil {
		return err
	}
	if m.Status.CompletionTime != nil {
		return frame.Exit(code(m.report(c)))
	}
	why := "interrupted"
	if frame.ContextCode(ctx) == frame.TimedOut {
		why = "--timeout is over"
	}
	a.Console.Printf("%s, and nothing carries migration %s out now. Its clusters keep the hub that they have.\n  continue: %s\n  return what has not moved: %s\n",
		why, m.Name, continueCommand(a, c, m), c.hint(a, "rollback "+m.Name))
	return frame.Exit(frame.ContextCode(ctx))
}

// continueCommand returns the command that continues a migration.
func continueCommand(a *frame.App, c *connection, m migration) string {
	words := []string{"cluster move"}
	for _, name := range m.Spec.IncludedManagedClusters {
		words = append(words, string(name))
	}
	if m.Spec.IncludedManagedClustersPlacementRef != "" {
		words = append(words, "--placement="+m.Spec.IncludedManagedClustersPlacementRef)
	}
	if c.pair.toContext == "" {
		words = append(words, "--to-context=CONTEXT")
	}
	if address, err := direct.AddressIn(m.ManagedClusterMigration); err == nil && c.pair.to != nil {
		if address.URL != c.pair.to.Config.Host {
			words = append(words, "--to-server="+quote.Shell(address.URL))
		}
		if c.pair.to.caFile != "" {
			words = append(words, "--to-ca-file="+quote.Shell(c.pair.to.caFile))
		}
	}
	return a.Hint(strings.Join(words, " ") + c.pair.flags(m.Namespace))
}

// printHolder says which process carries out a migration that has not ended, or how to continue it.
func (c *connection) printHolder(ctx context.Context, a *frame.App, m migration) error {
	if c.pair == nil || m.Status.CompletionTime != nil {
		return nil
	}
	h, err := direct.HolderOf(ctx, c.client, m.ManagedClusterMigration, c.clock.Now())
	switch {
	case err != nil:
		return c.explain(ctx, err)
	case h.Name != "":
		a.Console.Printf("process %s carries migration %s out\n", h.Name, m.Name)
	default:
		a.Console.Printf("nothing carries migration %s out. Its clusters keep the hub that they have.\n  continue: %s\n", m.Name, continueCommand(a, c, m))
	}
	return nil
}

// runDirect carries a migration out in this process.
func (c *connection) runDirect(ctx context.Context, a *frame.App, m migration) error {
	ctx = logr.NewContext(ctx, logr.New(errorPrinter{a.Console, &sync.Map{}}))
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	h, err := direct.HolderOf(ctx, c.client, m.ManagedClusterMigration, c.clock.Now())
	if err != nil {
		return err
	}
	if h.Name != "" {
		a.Console.Printf("process %s has migration %s; waiting for up to %s, in which it renews its Lease if it still runs\n", h.Name, m.Name, direct.MaxWait)
	}
	source, ok := c.client.(*direct.Store)
	if !ok {
		return errors.New("the connection has no store of migrations")
	}
	return direct.Run(ctx, m.ManagedClusterMigration, direct.Options{
		Source: direct.Hub{Client: source.Client, Config: c.Config}, Target: c.pair.target(),
		Process:  fmt.Sprintf("%d on %s of %s, since %s", os.Getpid(), host, cmp.Or(c.WhoAmI(ctx), "a user"), a.Clock.Now().UTC().Format(time.RFC3339)),
		Recorder: announcer{a.Console}, Clock: clock.RealClock{},
	})
}

// announcer prints the warnings of a migration.
type announcer struct{ console *frame.Console }

// Eventf implements events.EventRecorder.
func (a announcer) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) { //nolint:revive // the interface has so many
	if kind == corev1.EventTypeWarning {
		a.console.Printf("warning: %s: %s\n", reason, fmt.Sprintf(note, args...))
	}
}

// errorPrinter is a sink of logs that prints each error once. Other lines are for the log of a pod.
type errorPrinter struct {
	console *frame.Console
	printed *sync.Map
}

// Error implements logr.LogSink.
func (p errorPrinter) Error(err error, message string, _ ...any) {
	text := fmt.Sprintf("%s: %v", message, err)
	if _, known := p.printed.LoadOrStore(text, nil); !known && !errors.Is(err, context.Canceled) {
		p.console.Printf("warning: %s\n", text)
	}
}

// Init implements logr.LogSink.
func (errorPrinter) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (errorPrinter) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (errorPrinter) Info(int, string, ...any) {}

// WithValues implements logr.LogSink.
func (p errorPrinter) WithValues(...any) logr.LogSink { return p }

// WithName implements logr.LogSink.
func (p errorPrinter) WithName(string) logr.LogSink { return p }

// ending is how a command ends that has requested a change of a migration.
type ending struct {
	output frame.Output
	watch  bool
	// code is the exit code for a migration that was followed.
	code func(clusterreport.Migration) frame.Code
}

// end ends a command that has requested a change. Without a global hub the command carries the migration out. Otherwise the manager
// does, and the command prints the migration, or with --watch its progress.
func (c *connection) end(ctx context.Context, a *frame.App, m migration, e ending) error {
	switch {
	case c.pair != nil:
		return c.carryOut(ctx, a, e.output, m, e.code)
	case !e.watch:
		a.Console.Printf("watch it: %s\n", c.watchCommand(a, m))
		return c.printMigration(a, e.output, m)
	}
	m, err := c.followRequest(ctx, m)
	if err != nil {
		return err
	}
	return c.followToEnd(ctx, a, e.output, m, e.code)
}
