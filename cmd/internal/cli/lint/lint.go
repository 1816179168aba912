// Package lint has the commands that check an operator's source: `godwit lint`. They ask no cluster.
package lint

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// Command is `godwit lint`.
func Command(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "lint",
		Short: "Check an operator's source for what migrations rely on; asks no cluster",
	}
	cli.Parent(c)
	c.AddCommand(markersCommand(a))
	return c
}

type lintOptions struct {
	markers markers.Options
	output  cli.Output
}

func markersCommand(a *cli.App) *cobra.Command {
	o := &lintOptions{}
	c := &cobra.Command{
		Use:   "markers FOLDER...",
		Short: "Check that every root type says whether its objects are migrated",
		Long: "Check the Go types of an operator's API. Each root type (+kubebuilder:object:root=true,\n" +
			"lists aside) has to carry the marker that gives its definition the label by which it is\n" +
			"migrated, or the marker that excludes it, with a reason:\n\n" +
			"  // +kubebuilder:metadata:labels=" + markers.DefaultLabel + "\n" +
			"  // +" + markers.DefaultExclude + "=<reason>\n\n" +
			"Of a kind with several versions, the one with +kubebuilder:storageversion has to.\n" +
			"Folders are written as for the go command. Findings name file and line, and what to\n" +
			"write there. The same as a Go test: markers.Require, in the package\n" +
			"github.com/godwit-dev/godwit/crdmigrator/markers.\n\n" +
			"Exit codes: 0 nothing to correct, 1 findings, 2 error, such as no root type to check.",
		Example: "  # All API types below a folder\n  " + a.Program + " lint markers ./api/...\n\n" +
			"  # An operator with markers of its own\n  " + a.Program + " lint markers ./api/... \\\n" +
			"    --label=example.com/migrate=true --exclude-marker=example:migrate:exclude --allow-no-reason",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := offline(c)
			if err == nil && len(args) == 0 {
				err = cli.Usagef("which folders? name those of API types, such as ./api/...")
			}
			var findings []markers.Finding
			if err == nil {
				findings, err = markers.Check(o.markers, args...)
			}
			return sayFindings(a, o.output, findings, err)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.markers.Label, "label", markers.DefaultLabel, "label that migrated definitions have, as `KEY=VALUE`")
	flags.StringVar(&o.markers.Exclude, "exclude-marker", markers.DefaultExclude, "`NAME` of the marker of types that are not migrated")
	flags.BoolVar(&o.markers.AllowNoReason, "allow-no-reason", false, "accept exclude markers that give no reason")
	for _, flag := range []string{"label", "exclude-marker"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	o.output.AddDataTo(c)
	return c
}

// sayFindings prints a list for programs also when there was an error.
func sayFindings(a *cli.App, f cli.Output, findings []markers.Finding, failed error) error {
	err := cli.WriteDocument(a.Streams.Out, f, findingList(findings), nil, func(w io.Writer) error {
		return writeFindings(w, findings)
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case len(findings) > 0:
		return cli.Exit(cli.Pending)
	}
	return nil
}

// offline refuses flags that choose a cluster, which would not be asked.
func offline(c *cobra.Command) error {
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = cli.Usagef("--%s means nothing here: %s reads files and asks no cluster", f.Name, c.CommandPath())
		}
	})
	return err
}
