package frame

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// App is one invocation of the program.
type App struct {
	Args    []string // without the program's name
	Program string   // as the user types it: godwit, or kubectl godwit
	Streams genericiooptions.IOStreams
	Console *Console // stderr
	Clock   clock.PassiveClock
	Cluster *genericclioptions.ConfigFlags
}

// pluginPrefix is the prefix of kubectl plugins: `kubectl godwit` runs kubectl-godwit.
const pluginPrefix = "kubectl-"

// New returns an invocation with its arguments. The first is the name of the program.
func New(args []string, streams genericiooptions.IOStreams, now clock.PassiveClock) *App {
	return &App{
		Args:    args[1:],
		Program: programName(args[0]),
		Streams: streams,
		Console: NewConsole(streams.ErrOut),
		Clock:   now,
		Cluster: genericclioptions.NewConfigFlags(true),
	}
}

func programName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, ok := strings.CutPrefix(base, pluginPrefix); ok {
		return "kubectl " + plugin
	}
	return base
}

// Parent configures a command that only has subcommands: without a name it prints its
// help, and an unknown name is an error.
func Parent(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return unknownCommand(c, args[0])
	}
}

// demo is a word that readers of the guides may mistake for a command.
const demo = "demo"

// otherWords are names that other programs have for a command.
var otherWords = map[string]string{"migrate": "run"}

// unknownCommand suggests commands with a similar name, or commands with this name
// below another parent.
func unknownCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = 2 // cobra sets its default too late
	near := c.SuggestionsFor(name)
	if len(near) == 0 {
		meant, isOther := otherWords[name]
		if !isOther {
			meant = name
		}
		for _, parent := range c.Root().Commands() {
			for _, child := range parent.Commands() {
				if child.Name() == meant && (!isOther || !c.HasParent() || c == parent) {
					near = append(near, child.CommandPath())
				}
			}
		}
	}
	message := fmt.Sprintf("unknown command %q for %q", name, c.CommandPath())
	switch {
	case name == demo && !c.HasParent():
		message += ": run `make demo` in a clone of the repository"
	case len(near) > 0:
		message += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usagef("%s", message)
}

// FlagError reports an unknown command before an unknown flag: the flags of an unknown command are unknown too.
func (a *App) FlagError(c *cobra.Command, err error) error {
	depth := len(strings.Fields(c.CommandPath())) - len(strings.Fields(a.Program))
	if c.HasSubCommands() && depth < len(a.Args) && !strings.HasPrefix(a.Args[depth], "-") {
		return unknownCommand(c, a.Args[depth])
	}
	if bare := (*pflag.ValueRequiredError)(nil); errors.As(err, &bare) {
		return Usagef("%w: %s", err, bare.GetFlag().Usage)
	}
	return Usage(err)
}

// NoArguments is the Args function of a command without arguments.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, but got %q", c.CommandPath(), args)
	}
	return nil
}
