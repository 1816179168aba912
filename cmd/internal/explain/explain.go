// Package explain has the command that explains reasons: `godwit explain`.
package explain

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

type options struct {
	*frame.App
	output frame.Output
}

// Command is `godwit explain`.
func Command(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "explain [REASON... | MESSAGE]",
		Short: "Explain a reason or an error message, and what to do",
		Long: "Explain what a reason means and what to do. Reasons are in the output of commands, in\n" +
			"conditions and in events. Upper and lower case are the same. Without REASON, list the reasons by\n" +
			"the commands that have them.\n\n" +
			"MESSAGE is an error message of the API server, of Helm or of KubeVirt, or some words of one. The\n" +
			"command explains the reasons with which " + a.Program + " names its causes.\n\n" +
			"Exit codes: 0 explained, 2 unknown reason or message.",
		Example: "  # Explain a reason that " + a.Program + " crd plan or a condition shows\n" +
			"  " + a.Program + " explain StoredVersionNotInSpec\n\n" +
			"  # Explain the API server's own words\n" +
			"  " + a.Program + " explain 'status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions'\n\n" +
			"  # List all reasons, for a script\n" +
			"  " + a.Program + " explain -o json",
		ValidArgsFunction: func(_ *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return complete(given, toComplete), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.output.AddDataTo(c, list(nil))
	return c
}

// complete returns the reasons with a prefix, ignoring letter case.
func complete(given []string, toComplete string) []string {
	return slices.DeleteFunc(reason.Names(), func(name string) bool {
		return slices.Contains(given, name) || !strings.HasPrefix(strings.ToLower(name), strings.ToLower(toComplete))
	})
}

func (o *options) run(args []string) error {
	items, err := find(args)
	if err != nil {
		return err
	}
	return frame.WriteDocument(o.Streams.Out, o.output, list(items), nil, func(w io.Writer) error {
		if len(args) == 0 {
			return writeNames(w, reason.Groups())
		}
		return writeParagraphs(w, items)
	})
}

// find explains the reasons, all of them by default.
func find(names []string) ([]reason.Explanation, error) {
	if len(names) == 0 {
		names = reason.Names()
	}
	var all []reason.Explanation
	for _, name := range names {
		found := reason.Find(name)
		if isMessage(name) {
			found = findMessage(name)
		}
		if len(found) == 0 {
			return nil, unknown(name)
		}
		all = append(all, found...)
	}
	return all, nil
}

func unknown(name string) error {
	if isMessage(name) {
		return &frame.ActionableError{
			Reason: render.ReasonNotFound, Message: "no reason is known for the message " + strconv.Quote(name),
			Remedy: "give other words of it, or list what is left to do on the cluster: godwit plan",
		}
	}
	known := reason.Names()
	return &frame.ActionableError{
		Reason: render.ReasonNotFound, Message: "reason " + name + " not found", Remedy: frame.DidYouMean(frame.Similar(name, known), "list all reasons: godwit explain"),
	}
}
