package check

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
)

// Commands returns `godwit crd check`, and for one release of Godwit the hidden commands that check has replaced.
func Commands(a *frame.App) []*cobra.Command {
	return []*cobra.Command{command(a), bridgeCommand(a), adviseCommand(a)}
}

// replaced makes a command hidden. cobra says on stderr which command replaces it.
func replaced(a *frame.App, c *cobra.Command, by string) *cobra.Command {
	c.Hidden, c.Deprecated = true, "use: "+a.Program+" crd check "+by
	c.SetOut(a.Streams.ErrOut) // otherwise cobra would print the notice on stdout, before the document
	return c
}

func bridgeCommand(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use: "bridge -f {FILE|DIR|-}... [-d DIR]", Short: "Replaced by check and its flag --steps", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.check(c, o.bridgeCode) },
	}
	o.next.AddTo(c, "the CRDs of the next release")
	c.Flags().StringVarP(&o.steps, "directory", "d", "", "as --steps of check")
	o.addStepsTo(c)
	o.output.AddTo(c, crdreport.CheckList(nil))
	return replaced(a, c, "-f FILE --steps=DIR")
}

// bridgeCode returns the exit code of `godwit crd bridge`. It depends on the steps alone.
func (o *options) bridgeCode(all []release, written bool) frame.Code {
	live := false
	for _, r := range all {
		live = live || r.live != nil
	}
	switch {
	case len(withResult(all, unread)) > 0:
		return frame.Error
	case !live || len(withResult(all, bridge.Blocked)) > 0:
		return frame.Refused
	case !written && len(withResult(all, bridge.Ready)) > 0:
		return frame.Pending
	}
	return frame.OK
}

func adviseCommand(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use: "advise OLD NEW", Short: "Replaced by check and its flag --previous",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return frame.Usagef("specify two releases: OLD and NEW")
			}
			o.previous, o.next.Files = args[:1], args[1:]
			return o.advise(c)
		},
	}
	o.answers.AddTo(c)
	o.output.AddPagesTo(c, crdreport.AdviceList(nil))
	return replaced(a, c, "-f NEW --previous=OLD")
}
