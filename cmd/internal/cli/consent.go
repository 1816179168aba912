package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// CanAsk reports whether a user can read a question and answer it.
func (a *App) CanAsk() bool { return IsTerminal(a.Streams.In) && IsTerminal(a.Streams.ErrOut) }

// RefuseUnasked ends a command that must ask and has no terminal to ask on.
func (a *App) RefuseUnasked(command string) error {
	return Refuse(fmt.Errorf("%s changes the cluster and there is no terminal to ask on: nothing was written; "+
		"if that is what you want: %s", command, a.CommandLine("--yes")))
}

// Confirm is an error unless the answer is yes.
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

// answer reads a line, or returns when the context ends.
func (a *App) answer(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Streams.In).ReadString('\n') // the end of the input is a no
		lines <- line
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-lines:
		return strings.ToLower(strings.TrimSpace(line)), nil
	}
}

// SayEnding tells whoever pressed Ctrl-C that it was noticed, since finishing
// takes its time.
func (a *App) SayEnding(ctx context.Context) (said func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		switch Ended(ctx) {
		case TimedOut:
			a.Console.Printf("--timeout is over: finishing the writes under way\n")
		case Interrupted:
			a.Console.Printf("interrupted: finishing the writes under way; once more ends at once\n")
		}
	})
	return func() {
		if !stop() {
			<-done // or what follows would overtake it
		}
	}
}
