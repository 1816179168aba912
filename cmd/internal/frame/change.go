package frame

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// dryRunHelp has the help of each value of --dry-run.
var dryRunHelp = map[string]string{
	DryRunClient: "client: print what the command would do, and write nothing",
	DryRunServer: "server: send every write as a dry run, which the API server checks and does not store",
}

// ChangeFlags are the flags of a command that changes a cluster. A command registers those that it has.
type ChangeFlags struct {
	command string // as the user types it, without its parents
	yes     bool
	dryRun  Choice
	timeout DurationFlag
}

// AddYesTo registers --yes.
func (f *ChangeFlags) AddYesTo(c *cobra.Command) {
	f.command = c.Name()
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
}

// AddDryRunTo registers --dry-run, with its values beside none.
func (f *ChangeFlags) AddDryRunTo(c *cobra.Command, values ...string) {
	f.dryRun = Choice{Value: DryRunNone, Allowed: append([]string{DryRunNone}, values...), Kind: "string"}
	usage := []string{DryRunNone}
	for _, v := range values {
		usage = append(usage, dryRunHelp[v])
	}
	f.dryRun.AddTo(c, "dry-run", "", strings.Join(usage, "; "))
}

// AddTimeoutTo registers --timeout.
func (f *ChangeFlags) AddTimeoutTo(c *cobra.Command) { AddTimeout(c, &f.timeout) }

// DryRun returns the value of --dry-run.
func (f *ChangeFlags) DryRun() string { return f.dryRun.Value }

// Writes reports whether the command writes. A dry run does not.
func (f *ChangeFlags) Writes() bool { return f.dryRun.Value == "" || f.dryRun.Value == DryRunNone }

// Asks reports whether the command asks before it writes.
func (f *ChangeFlags) Asks() bool { return f.Writes() && !f.yes }

// Change is a change of a cluster that a command has planned.
type Change interface {
	// Question prints the plan and returns the question that the user has to answer with yes. An empty question means
	// that the command asks nothing, because it has nothing to write.
	Question() (string, error)
	// Run carries out the change. When the context ends, it finishes the writes that it has sent.
	Run(context.Context)
	// End prints the result. It returns an error with the exit code.
	End(context.Context) error
}

// Change plans with plan, which also connects, asks for confirmation, carries out the change, and prints the result.
// plan returns nil if there is no change to carry out, such as for a dry run, a refusal, or an error: its error then
// ends the command.
func (a *App) Change(ctx context.Context, f *ChangeFlags, plan func(context.Context) (Change, error)) error {
	if f.Asks() && !a.canAsk() {
		return a.refuseUnasked(f.command)
	}
	ctx, cancel := f.timeout.Limit(ctx)
	defer cancel()
	change, err := plan(ctx)
	if err != nil || change == nil {
		return err
	}
	if f.Asks() {
		question, err := change.Question()
		if err != nil {
			return err
		}
		if question != "" {
			if err := a.confirm(ctx, question); err != nil {
				return err
			}
		}
	}
	printed := a.printEnding(ctx)
	change.Run(ctx)
	printed()
	return change.End(ctx)
}

// Ending is the end of a command that may have written.
type Ending struct {
	Code Code // what it has done
	// Err is the error that ended the command early. It is nil for a complete command, even if its context has ended
	// since.
	Err error
	// Explain adds the next step to an error from before the end of the context.
	Explain func(context.Context, error) error
	// Resume is the command that resumes; empty means the same command line.
	Resume string
}

// ExitAfter returns the exit code of a command that may have written. It prints an error, or how to resume a command
// that the user or --timeout has ended.
func (a *App) ExitAfter(ctx context.Context, e Ending) error {
	if e.Err == nil {
		return Exit(e.Code)
	}
	end, resume := ContextCode(ctx), cmp.Or(e.Resume, a.CommandLine())
	switch end {
	case OK:
		a.Console.Problem(e.Explain(ctx, e.Err))
		end = Error
	case TimedOut:
		a.Console.Printf("stopped by --timeout; what was done is saved, resume with: %s\n", resume)
	default:
		a.Console.Printf("interrupted; what was done is saved, resume with: %s\n", resume)
	}
	return Exit(Worst(e.Code, end))
}

// canAsk reports whether a user can read a question and answer it.
func (a *App) canAsk() bool { return IsTerminal(a.Streams.In) && IsTerminal(a.Streams.ErrOut) }

// refuseUnasked ends a command that needs a confirmation and has no terminal.
func (a *App) refuseUnasked(command string) error {
	return Refuse(fmt.Errorf("%s changes the cluster, and there is no terminal to ask for confirmation: nothing was written; "+
		"to skip the confirmation prompt: %s", command, a.CommandLine("--yes")))
}

// confirm asks, and returns an error unless the user answers yes.
func (a *App) confirm(ctx context.Context, question string) error {
	a.Console.Printf("%s [y/N] ", question)
	answer, err := a.readAnswer(ctx)
	if err != nil {
		a.Console.Printf("\n")
		return err
	}
	if answer != "y" && answer != "yes" {
		return Refuse(fmt.Errorf("not confirmed, nothing was written"))
	}
	return nil
}

// readAnswer reads a line of the user's input. It returns early if the context ends.
func (a *App) readAnswer(ctx context.Context) (string, error) {
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

// printEnding prints a line when the context ends, because the command first finishes the writes that it has sent. The
// returned function waits for this line.
func (a *App) printEnding(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		switch ContextCode(ctx) {
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
