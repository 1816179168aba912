package cli

import (
	"github.com/spf13/cobra"
)

// usageTemplate is cobra's, without the twenty flags that choose cluster and
// user: as in kubectl, they have a command of their own.
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
Use "{{.CommandPath}} [command] --help" for more about a command.{{end}}
Use "{{.Root.CommandPath}} options" for the flags that choose cluster and user (--context, --kubeconfig, --as, ...).
`

func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
}

func (a *app) optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that choose cluster and user, which every command takes",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.streams.Out.Write([]byte("These flags may be passed to any command; they are kubectl's:\n\n" +
				c.Root().PersistentFlags().FlagUsages()))
			return err
		},
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, but was given %q", c.CommandPath(), args)
	}
	return nil
}
