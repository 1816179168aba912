package cluster

import (
	"context"
	"io"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// followEvery is how often the progress of a migration is read. Phases take seconds to minutes.
const followEvery = time.Second

// writeTimeout bounds the one request that writes, and the last read of a command.
const writeTimeout = 10 * time.Second

// reread reads a migration again after a pause. If the context has ended, it returns false, and the migration that was
// read last.
func (c *connection) reread(ctx context.Context, m migration) (migration, bool, error) {
	select {
	case <-ctx.Done():
		return m, false, nil
	case <-time.After(followEvery):
	}
	next, err := c.find(ctx, m.Name)
	if ctx.Err() != nil {
		return m, false, nil //nolint:nilerr // the read was interrupted: what was read last is shown
	}
	return next, err == nil, err
}

// follow prints the progress of a migration until it has settled or the context ends.
func (c *connection) follow(ctx context.Context, a *frame.App, m migration) (migration, error) {
	for said := ""; ; {
		if now := clusterreport.Progress(m.report(c)); now != said && (c.pair == nil || m.Status.Phase != "") {
			said = now
			a.Console.Printf("%s\n", now)
		}
		if m.Status.CompletionTime != nil {
			return m, nil
		}
		next, more, err := c.reread(ctx, m)
		if !more {
			return next, err
		}
		m = next
	}
}

// followRequest waits until the manager has accepted the request: a failed migration looks settled until then.
func (c *connection) followRequest(ctx context.Context, m migration) (migration, error) {
	for m.Annotations[api.RequestAnnotation] != "" {
		next, more, err := c.reread(ctx, m)
		if !more {
			return next, err
		}
		m = next
	}
	return m, nil
}

// watchCommand returns the command that shows the progress of a migration.
func (c *connection) watchCommand(a *frame.App, m migration) string {
	return c.hint(a, "status "+m.Name+" --watch")
}

// printMigration writes the document of a migration.
func (c *connection) printMigration(a *frame.App, f frame.Output, m migration) error {
	d := m.report(c)
	return frame.WriteDocument(a.Streams.Out, f, d, []string{d.ResourceName()}, func(w io.Writer) error {
		return clusterreport.WriteMigration(w, a.Style(a.Streams.Out, f), d)
	})
}

// followToEnd follows a migration, prints its document, and returns the exit code of code. The migration continues if
// the user stops watching it.
func (c *connection) followToEnd(ctx context.Context, a *frame.App, f frame.Output, m migration, code func(clusterreport.Migration) frame.Code) error {
	m, err := c.follow(ctx, a, m)
	if err != nil {
		return err
	}
	if err := c.printMigration(a, f, m); err != nil {
		return err
	}
	end := frame.ContextCode(ctx)
	again := c.watchCommand(a, m)
	switch end {
	case frame.OK:
		return frame.Exit(code(m.report(c)))
	case frame.TimedOut:
		a.Console.Printf("--timeout is over, and the migration continues; watch it: %s\n", again)
	default:
		a.Console.Printf("interrupted, and the migration continues; watch it: %s\n", again)
	}
	return frame.Exit(end)
}

// statusCode returns the exit code for a migration.
func statusCode(m clusterreport.Migration) frame.Code {
	switch {
	case !m.Settled:
		return frame.Pending
	case m.Phase == api.PhaseCompleted && m.Counts.Moved == m.Counts.Total:
		return frame.OK
	case m.Phase == api.PhaseCompleted:
		return frame.Partial
	}
	return frame.Refused
}
