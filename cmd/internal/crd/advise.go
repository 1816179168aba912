package crd

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
)

type adviseOptions struct {
	*frame.App
	answers manifest.Answers
	output  frame.Output
}

func adviseCommand(a *frame.App) *cobra.Command {
	o := &adviseOptions{App: a}
	c := &cobra.Command{
		Use:   "advise OLD NEW",
		Short: "Compare two releases of CRDs and say how objects get from the one to the other; connects to no cluster",
		Long: "Compare the schemas of two releases. For each change that is not additive, print the approach by which\n" +
			"new and existing objects get from the old release to the new one.\n\n" +
			"  RequiredFieldAdded   WebhookAndLateInitialize   new objects by a webhook, existing ones by writes that pass it\n" +
			"  FieldMadeImmutable   Validation                 the API server refuses the change\n" +
			"  FormatChanged        Webhook                    a webhook writes the new format\n" +
			"  Restructured         Webhook, ControllerLogic   the object, or the external system, has the values\n" +
			"  StatusOnlyBackfill   LateInitializeStatus       the provider fills the status of existing objects\n" +
			"  NeedsExternalState   ControllerLogic            the external system has the value\n" +
			"  Additive             None                       nothing is to be done\n\n" +
			"What two schemas can't tell is Undecided. --answer decides it, or the annotation\n" +
			advise.Annotation + " of the new CRD. The command compares CRDs of the same name. OLD and NEW\n" +
			"are files, directories or URLs; - reads stdin.\n\n" +
			"Exit codes: 0 no advice, 1 advice, 2 error.",
		Example: "  # Compare two releases of a provider\n" +
			"  " + a.Program + " crd advise v1/package/crds v2/package/crds\n\n" +
			"  # The pages for users and developers, with what the authors know\n" +
			"  " + a.Program + " crd advise old.yaml new.yaml --answer=spec.forProvider.owner=ExternalState -o markdown",
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c, args)
		},
	}
	o.answers.AddTo(c)
	o.output.AddPagesTo(c, crdreport.AdviceList(nil))
	return c
}

func (o *adviseOptions) run(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return frame.Usagef("specify two releases: OLD and NEW")
	}
	answers, err := o.answers.Parse()
	if err != nil {
		return err
	}
	before, err := o.read(c, args[0])
	if err != nil {
		return err
	}
	after, err := o.read(c, args[1])
	if err != nil {
		return err
	}
	advice := []advise.Advice{}
	for _, next := range after {
		at := slices.IndexFunc(before, func(r manifest.Release) bool { return r.Name == next.Name })
		if at < 0 || before[at].CRD == nil || next.CRD == nil {
			continue // no object exists, or the API server serves neither
		}
		more, err := advise.For(before[at].CRD, next.CRD, answers)
		if err != nil {
			return err
		}
		advice = append(advice, more...)
	}
	return o.print(advice)
}

func (o *adviseOptions) read(c *cobra.Command, file string) ([]manifest.Release, error) {
	in := manifest.Input{Files: []string{file}}
	if err := in.Parse(c, o.Streams.In); err != nil {
		return nil, err
	}
	return in.Read(o.Streams.In)
}

func (o *adviseOptions) print(advice []advise.Advice) error {
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
