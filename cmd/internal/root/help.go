package root

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// usageTemplate is cobra's template without the twenty flags that select cluster and user: as in kubectl, `godwit
// options` prints them.
const usageTemplate = `Usage:{{if .HasAvailableSubCommands}}

  {{.CommandPath}} [command]{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
Use "{{.Root.CommandPath}} options" for the flags that choose the cluster and the user (--context, --kubeconfig, --as, ...).
`

func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
}

func optionsCommand(a *frame.App) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of every command, which choose the cluster and the user",
		Args:  frame.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.Streams.Out.Write([]byte("Every command has these flags, which are kubectl's:\n\n" +
				c.Root().PersistentFlags().FlagUsages()))
			return err
		},
	}
}
