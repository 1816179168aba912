package root

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
)

func versionCommand(a *cli.App) *cobra.Command {
	output := cli.Choice{Allowed: []string{"json", "yaml"}, Kind: "format"}
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			v := cli.Build()
			switch output.Value {
			case "json":
				return report.Encode(a.Streams.Out, v)
			case "yaml":
				return report.EncodeYAML(a.Streams.Out, v)
			}
			commit := ""
			if v.Commit != "" {
				commit = " (commit " + v.Commit + ")"
			}
			_, err := fmt.Fprintf(a.Streams.Out, "godwit %s%s, %s, %s\n", v.Version, commit, v.GoVersion, v.Platform)
			return err
		},
	}
	output.AddTo(c, "output", "o", "output format: json or yaml (default: a line)")
	return c
}
