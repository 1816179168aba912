package root

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	var output cli.Output
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			v := cli.Build()
			return cli.WriteDocument(a.Streams.Out, output, v, nil, func(w io.Writer) error {
				commit := ""
				if v.Commit != "" {
					commit = " (commit " + v.Commit + ")"
				}
				_, err := fmt.Fprintf(w, "godwit %s%s, %s, %s\n", v.Version, commit, v.GoVersion, v.Platform)
				return err
			})
		},
	}
	output.AddDataTo(c)
	return c
}
