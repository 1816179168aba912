package check

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

// compare checks the next release against the files of the previous one, and connects to no cluster.
func (o *options) compare(c *cobra.Command, args []string) error {
	if err := o.compareFlags(c, args); err != nil {
		return err
	}
	o.next.Files = args[1:]
	before, err := o.read(c, args[0])
	if err != nil {
		return err
	}
	all, err := o.releases(c)
	if err != nil {
		return err
	}
	next := make([]manifest.Release, len(all))
	for i, r := range all {
		next[i] = r.Release
	}
	gone, err := checkComparable(before, next)
	if err != nil {
		return err
	}
	for i := range all {
		r := &all[i]
		if err := r.decide(releasecheck.Compared(named(before, r.Name), r.CRD, fileOf(r.Release))); err != nil {
			return err
		}
	}
	for _, r := range gone {
		r.Source = "" // no file of the next release has it
		all = append(all, release{Release: r, check: releasecheck.Gone(r.CRD)})
	}
	notAsked := func() godwit.Fix { return nil } // no cluster refuses anything
	if err := o.print(items(all, o.Remedies(), o.nextCommand(false), notAsked)); err != nil {
		return err
	}
	return frame.Exit(o.exitCode(all, false))
}

// compareFlags checks the arguments and the flags before anything is read.
func (o *options) compareFlags(c *cobra.Command, args []string) error {
	if len(args) != 2 || len(o.next.Files) > 0 || len(o.previous) > 0 {
		return frame.Usagef("specify the files of the next release with -f, or the previous and the next release as two arguments: %s OLD NEW", c.CommandPath())
	}
	if slices.Equal(args, []string{manifest.Dash, manifest.Dash}) {
		return frame.Usagef("only one of both releases can come from stdin")
	}
	for _, flag := range []string{"steps", "references"} {
		if c.Flags().Changed(flag) {
			return frame.Usagef("--%s needs a cluster: specify the next release with -f", flag)
		}
	}
	return nil
}

// fileOf is the file of a CRD, for commands; empty for stdin.
func fileOf(r manifest.Release) string {
	if r.Source == manifest.Stdin {
		return ""
	}
	return r.Source
}

// completeRelease completes the arguments: the files of two releases.
func completeRelease(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) >= 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return manifest.Extensions(), cobra.ShellCompDirectiveFilterFileExt
}
