package frame

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	b := &Bench{Dir: t.TempDir()}
	p, err := b.Start("script", exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Crash() })
	return p
}

// TestDuring: work ends with the process, and its error has the end of the log.
func TestDuring(t *testing.T) {
	until := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := start(t, "echo why >&2; exit 3").During(t.Context(), until); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want the end of the log", err)
	}
	if err := start(t, "exec sleep 60").During(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("work that ends before the process: %v", err)
	}
}

// TestAwaitExit returns the exit code, or the cause of an interruption.
func TestAwaitExit(t *testing.T) {
	if code, err := start(t, "exit 3").AwaitExit(t.Context()); err != nil || code != 3 {
		t.Errorf("got %d, %v, want 3", code, err)
	}
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := start(t, "exec sleep 60").AwaitExit(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// TestEnd: a process may have ended, or never have started.
func TestEnd(t *testing.T) {
	var none *Process
	running, ended := start(t, "exec sleep 60"), start(t, "true")
	<-ended.Exited()
	for name, p := range map[string]*Process{"none": none, "running": running, "ended": ended} {
		if err := p.End(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !running.Ended() {
		t.Error("the process runs")
	}
	if err := ended.Crash(); err != nil {
		t.Errorf("crash of a process that has ended: %v", err)
	}
}
