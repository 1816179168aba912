// Package lint has the commands that check an operator's source: `godwit lint`. They ask no cluster.
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
		Short: "Check the Go source and the CRDs of an operator; connects to no cluster",
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
			var findings []markers.Finding
			failed := checkCall(c, args, "your API types, such as ./api/...")
			if failed == nil {
				findings, failed = markers.Check(o.markers, args...)
			}
			return end(a, o.output, check[markerFinding, markers.Finding]{findingList(findings), findings, failed})
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

// check is what a check has found, as a list for programs and as lines for people.
type check[I any, F fmt.Stringer] struct {
	list     render.List[I]
	findings []F
	failed   error
}

// end prints what a check has found, and chooses the exit code. Programs get a list also if the check has failed.
func end[I any, F fmt.Stringer](a *frame.App, o frame.Output, r check[I, F]) error {
	err := frame.WriteDocument(a.Streams.Out, o, r.list, nil, func(w io.Writer) error { return writeFindings(w, r.findings) })
	switch {
	case r.failed != nil:
		return r.failed
	case err != nil:
		return err
	case len(r.findings) > 0:
		return frame.Exit(frame.Pending)
	}
	return nil
}

// checkCall refuses flags that choose a cluster, and a call without directories.
func checkCall(c *cobra.Command, args []string, directories string) error {
	if err := offline(c); err != nil {
		return err
	}
	if len(args) == 0 {
		return frame.Usagef("no directory is given: give the directories of %s", directories)
	}
	return nil
}

// offline refuses flags that choose a cluster, which would not be asked.
func offline(c *cobra.Command) error {
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = frame.Usagef("remove --%s: %s reads files and connects to no cluster", f.Name, c.CommandPath())
		}
	})
	return err
}
