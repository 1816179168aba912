package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// app is one invocation of the program.
type app struct {
	args    []string // without the program's name
	program string   // as a person types it: godwit, or kubectl godwit
	streams genericiooptions.IOStreams
	console *console // stderr
	clock   clock.PassiveClock
	cluster *genericclioptions.ConfigFlags
}

// pluginPrefix is what kubectl's plugins are called: kubectl-godwit is run by
// `kubectl godwit`.
const pluginPrefix = "kubectl-"

// Main runs the program with its arguments, of which the first is its name, and
// returns what to exit with. The context ends when the user interrupts. The clock
// tells which times are of today, in what the program prints.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams, now clock.PassiveClock) int {
	a := &app{
		args:    args[1:],
		program: programName(args[0]),
		streams: streams,
		console: newConsole(streams.ErrOut),
		clock:   now,
		cluster: genericclioptions.NewConfigFlags(true),
	}
	root := a.rootCommand()
	root.SetArgs(a.args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(a.console)
	command, err := root.ExecuteContextC(ctx)
	return int(a.finish(ctx, command, err))
}

func programName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, ok := strings.CutPrefix(base, pluginPrefix); ok {
		return "kubectl " + plugin
	}
	return base
}

// finish says what has not been said yet and chooses the exit code.
func (a *app) finish(ctx context.Context, command *cobra.Command, err error) Code {
	var usage *usageError
	var exited *exitError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &exited):
		if exited.err != nil {
			a.console.problem(exited.err)
		}
		return exited.code
	case ended(ctx) != OK:
		a.console.printf("interrupted, nothing was written\n")
		return ended(ctx)
	case errors.Is(err, errTimeout):
		a.console.problem(fmt.Errorf("%w, nothing was written; allow more time", errTimeout))
		return TimedOut
	case errors.As(err, &usage):
		a.console.problem(err)
		a.console.printf("See '%s --help'.\n", command.CommandPath())
	default:
		a.console.problem(err)
	}
	return Error
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(a.program, " ", "-"),
		Short: "Carry Kubernetes objects across API versions, and lose none on the way",
		Long: "Godwit migrates the objects of custom resources to the storage version of their\n" +
			"CustomResourceDefinition, and those stashed in ControllerRevisions to the current\n" +
			"version, so that old API versions can be dropped.\n\n" +
			"Begin with a look, which changes nothing and installs nothing:",
		Example:       "  " + a.program + " crd plan",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.program},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	parent(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	a.cluster.AddFlags(root.PersistentFlags())
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(a.crdCommand(), a.revisionCommand(), a.lintCommand())
	root.AddCommand(a.demoCommands()...)
	root.AddCommand(a.managerCommand(), a.rbacCommand(), a.versionCommand(), a.completionCommand(), a.optionsCommand())
	a.completeClusterFlags(root)
	setHelp(root)
	return root
}

// parent makes a command that only has subcommands: alone it prints its help,
// and a name it does not know is an error.
func parent(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		message := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
		c.SuggestionsMinimumDistance = 2 // cobra sets its default too late
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			message += ": did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("%s", message)
	}
}

func (a *app) crdCommand() *cobra.Command {
	crd := &cobra.Command{
		Use:   "crd",
		Short: "Migrate custom resources to the storage version of their definition",
		Long: "A CustomResourceDefinition stores new objects at one version, its storage version.\n" +
			"Objects written before stay in etcd at the version they were written at, and\n" +
			"status.storedVersions remembers it: such a version must not be dropped. The\n" +
			"commands below find such objects, migrate them, prove from etcd that it is done, and\n" +
			"tell before a release whether it drops a version too early.",
	}
	parent(crd)
	crd.AddCommand(a.planCommand(), a.runCommand(), a.verifyCommand(), a.checkCommand())
	return crd
}
