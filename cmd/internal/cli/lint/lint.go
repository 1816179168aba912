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
		Short: "Check the Go source and the CRDs of an operator; connects to no cluster",
	}
	cli.Parent(c)
	c.AddCommand(markersCommand(a), providerCommand(a))
	return c
}

type lintOptions struct {
	markers markers.Options
	output  cli.Output
}

func markersCommand(a *cli.App) *cobra.Command {
	o := &lintOptions{}
	c := &cobra.Command{
		Use:   "markers DIRECTORY...",
		Short: "Check that every root type says whether its objects are migrated",
		Long: "Check the Go types of an operator's API. Each root type (+kubebuilder:object:root=true, except\n" +
			"lists) needs one of two markers. The first gives its CRD the label that selects it for\n" +
			"migration. The second excludes it, with a reason:\n\n" +
			"  // +kubebuilder:metadata:labels=" + markers.DefaultLabel + "\n" +
			"  // +" + markers.DefaultExclude + "=<reason>\n\n" +
			"If a kind has several versions, the type with +kubebuilder:storageversion needs the marker.\n" +
			"Write directories as for the go command. Each finding names the file, the line and the marker\n" +
			"to write. The same check as a Go test: markers.Require in package\n" +
			"github.com/godwit-dev/godwit/crdmigrator/markers.\n\n" +
			"Exit codes: 0 no findings, 1 findings, 2 error, for example no root type to check.",
		Example: "  # Check all API types in a directory and its subdirectories\n" +
			"  " + a.Program + " lint markers ./api/...\n\n" +
			"  # Check an operator with its own markers\n" +
			"  " + a.Program + " lint markers ./api/... \\\n" +
			"    --label=example.com/migrate=true --exclude-marker=example:migrate:exclude --allow-no-reason",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := offline(c)
			if err == nil && len(args) == 0 {
				err = cli.Usagef("no directory is given: give the directories of your API types, such as ./api/...")
			}
			var findings []markers.Finding
			if err == nil {
				findings, err = markers.Check(o.markers, args...)
			}
			return sayFindings(a, o.output, findings, err)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.markers.Label, "label", markers.DefaultLabel, "label of CRDs whose objects are migrated, as `KEY=VALUE`")
	flags.StringVar(&o.markers.Exclude, "exclude-marker", markers.DefaultExclude, "`NAME` of the marker of types whose objects are not migrated")
	flags.BoolVar(&o.markers.AllowNoReason, "allow-no-reason", false, "accept exclude markers without a reason")
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
	return end(len(findings), failed, err)
}

// end is how a check ends that has found n things, or has failed, or could not write what it found.
func end(n int, failed, unwritten error) error {
	switch {
	case failed != nil:
		return failed
	case unwritten != nil:
		return unwritten
	case n > 0:
		return cli.Exit(cli.Pending)
	}
	return nil
}

// offline refuses flags that choose a cluster, which would not be asked.
func offline(c *cobra.Command) error {
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = cli.Usagef("remove --%s: %s reads files and connects to no cluster", f.Name, c.CommandPath())
		}
	})
	return err
}
