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

{{$all := .}}{{range .Groups}}{{.Title}}{{$group := .ID}}{{range $all.Commands}}{{if and (eq .GroupID $group) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{if .Groups}}Other commands:{{else}}Commands:{{end}}{{range .Commands}}{{if and (eq .GroupID "") .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
Use "{{.Root.CommandPath}} options" for the flags that choose the cluster and the user.
`

func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
}

// addGroup adds commands to the root, below a title in its help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = title
		root.AddCommand(c)
	}
}

func optionsCommand(a *frame.App) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that choose the cluster and the user",
		Args:  frame.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.Streams.Out.Write([]byte("Every command has these flags, which are kubectl's:\n\n" +
				c.Root().PersistentFlags().FlagUsages()))
			return err
		},
	}
}
