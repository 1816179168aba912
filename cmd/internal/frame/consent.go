package frame

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// CanAsk reports whether a user can read a question and answer it.
func (a *App) CanAsk() bool { return IsTerminal(a.Streams.In) && IsTerminal(a.Streams.ErrOut) }

// RefuseUnasked ends a command that needs a confirmation and has no terminal.
func (a *App) RefuseUnasked(command string) error {
	return Refuse(fmt.Errorf("%s changes the cluster, and there is no terminal to ask for confirmation: nothing was written; "+
		"to run it without a question: %s", command, a.CommandLine("--yes")))
}

// Confirm returns an error unless the user answers yes.
func (a *App) Confirm(ctx context.Context) error {
	answer, err := a.answer(ctx)
	if err != nil {
		a.Console.Printf("\n")
		return err
	}
	if answer != "y" && answer != "yes" {
		return Refuse(fmt.Errorf("not confirmed, nothing was written"))
	}
	return nil
}

// answer reads a line. It returns early if the context ends.
func (a *App) answer(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Streams.In).ReadString('\n') // the end of the input means no
		lines <- line
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-lines:
		return strings.ToLower(strings.TrimSpace(line)), nil
	}
}

// SayEnding prints a line when the context ends, since a command first finishes the writes
// that it has sent. The returned function waits for that line.
func (a *App) SayEnding(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		switch Ended(ctx) {
		case TimedOut:
			a.Console.Printf("--timeout is over: finishing the writes that were sent\n")
		case Interrupted:
			a.Console.Printf("interrupted: finishing the writes that were sent; press Ctrl-C again to exit at once\n")
		}
	})
	return func() {
		if !stop() {
			<-done // so that later messages follow it
		}
	}
}

// ExitAfter ends a command that wrote. code is what it has done. An error that came while the context
// lived is printed, as explain words it. A context that has ended is named, with the command that
// resumes.
func (a *App) ExitAfter(ctx context.Context, code Code, err error, explain func(context.Context, error) error) error {
	if err == nil {
		return Exit(code)
	}
	end := Ended(ctx)
	switch end {
	case OK:
		a.Console.Problem(explain(ctx, err))
		end = Error
	case TimedOut:
		a.Console.Printf("stopped by --timeout; resume with: %s\n", a.CommandLine())
	default:
		a.Console.Printf("interrupted; resume with: %s\n", a.CommandLine())
	}
	return Exit(Worst(code, end))
}
