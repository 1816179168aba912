package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/quote"
)

const approachHelp = "  RequiredFieldAdded   WebhookAndLateInitialize   new objects by a webhook, existing ones by writes that pass it\n" +
	"  FieldMadeImmutable   Validation                 the API server refuses the change\n" +
	"  FormatChanged        Webhook                    a webhook writes the new format\n" +
	"  Restructured         Webhook, ControllerLogic   the object, or the external system, has the values\n" +
	"  StatusOnlyBackfill   LateInitializeStatus       the provider fills the status of existing objects\n" +
	"  NeedsExternalState   ControllerLogic            the external system has the value\n" +
	"  Additive             None                       nothing is to be done\n\n" +
	"What two schemas can't tell is Undecided. --answer decides it, or the annotation\n" +
	advise.Annotation + " of the next CRD. CRDs of the same name are compared.\n\n"

// advise compares with the previous release, and connects to no cluster.
func (o *options) advise(c *cobra.Command) error {
	o.output.Empty = crdreport.AdviceList(nil)
	for _, flag := range []string{"steps", "between", "references"} {
		if c.Flags().Changed(flag) {
			return frame.Usagef("--previous and --%s are mutually exclusive: --previous compares files, and connects to no cluster", flag)
		}
	}
	if o.output.Value == frame.SARIF || o.output.Value == frame.JUnit {
		return frame.Usagef("--previous and -o %s are mutually exclusive", o.output.Value)
	}
	answers, err := o.answers.Parse()
	if err != nil {
		return err
	}
	before, err := o.read(c, o.previous...)
	if err != nil {
		return err
	}
	if err := o.next.Parse(c, o.Streams.In); err != nil {
		return err
	}
	after, err := o.next.Read(o.Streams.In)
	if err != nil {
		return err
	}
	gone, err := checkComparable(before, after)
	if err != nil {
		return err
	}
	for _, r := range gone {
		o.Console.Printf("%s: not compared: the next release does not have it\n", r.Name)
	}
	advice := []advise.Advice{}
	for _, next := range after {
		old := named(before, next.Name)
		if old == nil {
			continue // the CRD is new, and has no objects
		}
		if removed := releasecheck.For(releasecheck.Compared(old, next.CRD, next.Source)).RemovedVersions; len(removed) > 0 {
			o.Console.Printf("%s: not compared: the next release removes %s%s\n", next.Name, strings.Join(removed, ", "), o.compareCommand())
		}
		more, err := advise.For(old, next.CRD, answers)
		if err != nil {
			return err
		}
		advice = append(advice, more...)
	}
	return o.printAdvice(advice)
}

// compareCommand names the command that compares the same files as a check: it takes one of each release.
func (o *options) compareCommand() string {
	if len(o.previous) != 1 || len(o.next.Files) != 1 {
		return ""
	}
	words := []string{"; what that needs:", o.Program, "crd check"}
	if o.next.Recursive {
		words = append(words, "-R")
	}
	return strings.Join(append(words, quote.Shell(o.previous[0]), quote.Shell(o.next.Files[0])), " ")
}

// checkComparable returns an error if a CRD can't be read, or if the files have no CRD in common: that nothing was compared does not mean
// that nothing has changed. It returns the CRDs of the previous release that the next one lacks.
func checkComparable(before, after []manifest.Release) ([]manifest.Release, error) {
	for _, r := range slices.Concat(before, after) {
		if r.CRD == nil {
			return nil, &frame.ActionableError{
				Reason:  render.ReasonAPIVersionRemoved,
				Message: fmt.Sprintf("%s in %s is written in apiextensions.k8s.io/v1beta1, and can't be compared", r.Name, r.Source),
				Remedy:  render.ReasonAPIVersionRemoved.Fix.String(),
			}
		}
	}
	gone := slices.DeleteFunc(slices.Clone(before), func(r manifest.Release) bool { return named(after, r.Name) != nil })
	if len(gone) == len(before) {
		return nil, fmt.Errorf("nothing to compare: no CRD is in both releases: the previous one has %s, and the next one %s", strings.Join(names(before), ", "), strings.Join(names(after), ", "))
	}
	return gone, nil
}

func names(releases []manifest.Release) []string {
	all := make([]string, len(releases))
	for i, r := range releases {
		all[i] = r.Name
	}
	return all
}

func (o *options) printAdvice(advice []advise.Advice) error {
	list := crdreport.AdviceList(advice)
	err := frame.WriteDocument(o.Streams.Out, o.output, list, render.NamesOf(list.Items), func(w io.Writer) error {
		if o.output.Value == frame.Markdown {
			return crdreport.WriteAdvicePages(w, list.Items)
		}
		return crdreport.WriteAdvice(w, o.Style(o.Streams.Out, o.output), list.Items)
	})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(advice, advise.Advice.Needed) {
		return frame.Exit(frame.Pending)
	}
	return nil
}
