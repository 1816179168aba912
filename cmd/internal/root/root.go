package root

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/agent"
	"github.com/godwit-dev/godwit/cmd/internal/cluster"
	"github.com/godwit-dev/godwit/cmd/internal/crd"
	"github.com/godwit-dev/godwit/cmd/internal/crd/check"
	"github.com/godwit-dev/godwit/cmd/internal/crd/doctor"
	"github.com/godwit-dev/godwit/cmd/internal/evidence"
	"github.com/godwit-dev/godwit/cmd/internal/explain"
	"github.com/godwit-dev/godwit/cmd/internal/externalname"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/lint"
	"github.com/godwit-dev/godwit/cmd/internal/manager"
	"github.com/godwit-dev/godwit/cmd/internal/plan"
	"github.com/godwit-dev/godwit/cmd/internal/rbac"
	"github.com/godwit-dev/godwit/cmd/internal/resource"
	"github.com/godwit-dev/godwit/cmd/internal/revision"
	"github.com/godwit-dev/godwit/cmd/internal/version"
)

// Main runs the program and returns its exit code. The first argument is the name of the program. The context ends when
// the user interrupts. The output shows times of today, according to the clock, without a date.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams, now clock.PassiveClock) int {
	a := frame.New(args, streams, now)
	root := rootCommand(a)
	root.SetArgs(a.Args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(a.Console)
	command, err := root.ExecuteContextC(frame.WithBegan(ctx, now.Now()))
	return int(a.Finish(ctx, command, err))
}

func rootCommand(a *frame.App) *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(a.Program, " ", "-"),
		Short: "Migrate Kubernetes objects to new API versions without losing any",
		Long: "Move Kubernetes objects across a boundary, and lose none: to the storage version\n" +
			"of their CRD, so that you can remove an old API version; to the version of\n" +
			"instance types that the next KubeVirt reads; to a new form of the external names\n" +
			"of Crossplane; to another hub of Open Cluster Management.\n\n" +
			"Start with a plan. It changes nothing and installs nothing:",
		Example:       "  " + a.Program + " plan",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.Program},
		Version:       frame.Build().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	frame.Parent(root)
	root.SetFlagErrorFunc(a.FlagError)
	a.Cluster.AddFlags(root.PersistentFlags())
	root.CompletionOptions.DisableDefaultCmd = true
	crds := crd.Command(a)
	crds.AddCommand(check.Commands(a)...)
	crds.AddCommand(doctor.Command(a))
	addGroup(root, "Start here", plan.Command(a), explain.Command(a))
	addGroup(root, "Migrate", crds, resource.Command(a), revision.Command(a), externalname.Command(a), cluster.Command(a), evidence.Command(a))
	addGroup(root, "In the cluster", manager.Command(a), agent.Command(a), rbac.Command(a))
	addGroup(root, "For authors of operators and providers", lint.Command(a))
	root.AddCommand(version.Command(a), completionCommand(a), optionsCommand(a))
	inOrder(root)
	completeClusterFlags(a, root)
	setHelp(root)
	return root
}

// inOrder makes help list flags in the order of registration: selection, changes, then pace.
func inOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, child := range c.Commands() {
		inOrder(child)
	}
}
