package root

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand(a *frame.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print a script for completion in a shell",
		Long: "Print a completion script for a shell. It completes the names of CRDs from the cluster.\n\n" +
			"For `kubectl godwit`, put an executable file with the name kubectl_complete-godwit into a\n" +
			"directory of PATH:\n" +
			"  #!/bin/sh\n" +
			"  exec kubectl-godwit __complete \"$@\"",
		Example: "  # bash, for this shell\n" +
			"  source <(godwit completion bash)\n\n" +
			"  # zsh, for all shells\n" +
			"  godwit completion zsh > \"${fpath[1]}/_godwit\"\n\n" +
			"  # fish, for this shell\n" +
			"  godwit completion fish | source",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return frame.Usagef("specify one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch root, out := c.Root(), a.Streams.Out; args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return fmt.Errorf("no completion for %s", args[0])
		},
	}
}

// completeClusterFlags completes --context, --cluster and --user from the
// kubeconfig.
func completeClusterFlags(a *frame.App, root *cobra.Command) {
	names := map[string]func() []string{
		"context": a.Contexts,
		"cluster": func() []string { return slices.Collect(maps.Keys(a.KubeConfig().Clusters)) },
		"user":    func() []string { return slices.Collect(maps.Keys(a.KubeConfig().AuthInfos)) },
	}
	for flag, of := range names {
		_ = root.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slices.Sorted(slices.Values(of())), cobra.ShellCompDirectiveNoFileComp
		})
	}
}
