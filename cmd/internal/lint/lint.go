// Package lint has the commands that check an operator's source: `godwit lint`. They use no cluster.
package lint

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// Command is `godwit lint`.
func Command(a *frame.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "lint",
		Short: "Check the Go source and the CRDs of an operator",
	}
	frame.Parent(c)
	c.AddCommand(markersCommand(a), providerCommand(a))
	return c
}

type lintOptions struct {
	markers markers.Options
	output  frame.Output
}

func markersCommand(a *frame.App) *cobra.Command {
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
			if err := checkCall(c, args, "your API types, such as ./api/..."); err != nil {
				return err
			}
			findings, err := markers.Check(o.markers, args...)
			if err != nil {
				return err
			}
			return end(a, o.output, findingList(findings), findings)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.markers.Label, "label", markers.DefaultLabel, "label of CRDs whose objects are migrated, as `KEY=VALUE`")
	flags.StringVar(&o.markers.Exclude, "exclude-marker", markers.DefaultExclude, "`NAME` of the marker of types whose objects are not migrated")
	flags.BoolVar(&o.markers.AllowNoReason, "allow-no-reason", false, "accept exclude markers without a reason")
	for _, flag := range []string{"label", "exclude-marker"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	o.output.AddDataTo(c, findingList(nil))
	return c
}

// end prints the findings of a check, as a list for programs and as lines for users, and returns the exit code.
func end[I any, F fmt.Stringer](a *frame.App, o frame.Output, list render.List[I], findings []F) error {
	err := frame.WriteDocument(a.Streams.Out, o, list, nil, func(w io.Writer) error { return writeFindings(w, findings) })
	if err == nil && len(findings) > 0 {
		err = frame.Exit(frame.Pending)
	}
	return err
}

// checkCall refuses flags that select a cluster, and a call without directories.
func checkCall(c *cobra.Command, args []string, directories string) error {
	if err := offline(c); err != nil {
		return err
	}
	if len(args) == 0 {
		return frame.Usagef("specify the directories of %s", directories)
	}
	return nil
}

// offline refuses flags that select a cluster: the command does not use one.
func offline(c *cobra.Command) error {
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = frame.Usagef("remove --%s: %s reads files and connects to no cluster", f.Name, c.CommandPath())
		}
	})
	return err
}
