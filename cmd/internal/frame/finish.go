package frame

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Finish prints an error that is not printed yet, and returns the exit code. For programs, it prints an empty document
// if the command failed before it printed its own.
func (a *App) Finish(ctx context.Context, command *cobra.Command, err error) Code {
	if failed := a.printEmpty(command, err); failed != nil {
		err = failed
	}
	var usage *usageError
	var exited *exitError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &exited):
		if exited.err != nil {
			a.Console.Problem(exited.err)
		}
		return exited.code
	case ContextCode(ctx) != OK:
		a.Console.Printf("interrupted, nothing was written\n")
		return ContextCode(ctx)
	case errors.Is(err, errTimeout):
		a.Console.Problem(fmt.Errorf("%w, nothing was written; allow more time", errTimeout))
		return TimedOut
	case errors.As(err, &usage):
		a.Console.Problem(err)
		a.Console.Printf("See '%s --help'.\n", command.CommandPath())
	default:
		a.Console.Problem(err)
	}
	return Error
}

// printEmpty prints the empty document of a command for programs if the command failed before it printed its own. A
// program that reads JSON gets JSON in every case, also for a wrong command line, whose flags are not set.
func (a *App) printEmpty(c *cobra.Command, cause error) error {
	flag := c.Flags().Lookup(outputFlag)
	if cause == nil || flag == nil || isPrinted(cause) {
		return nil
	}
	known, ok := flag.Value.(*Output)
	if !ok || known.Empty == nil {
		return nil
	}
	f := *known
	if errors.As(cause, new(*usageError)) && f.Value == "" {
		f.Value = formatAmong(a.Args)
	}
	if !f.machine() {
		return nil
	}
	return WriteDocument(a.Streams.Out, f, f.Empty, nil, nil)
}

// formatAmong finds json or yaml in a command line that could not be parsed.
func formatAmong(args []string) string {
	format := ""
	for i, arg := range args {
		value := ""
		switch {
		case strings.HasPrefix(arg, "--output="), strings.HasPrefix(arg, "-o="):
			_, value, _ = strings.Cut(arg, "=")
		case strings.HasPrefix(arg, "-o") && arg != "-o":
			value = arg[len("-o"):]
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			value = args[i+1]
		}
		if value == "json" || value == "yaml" {
			format = value
		}
	}
	return format
}
