package lint

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/lint/providerlint"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

// providerFinding is one finding in a CRD or in Go source.
type providerFinding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Subject string `json:"subject"`
	Path    string `json:"path"`
	render.Cause
}

// providerList returns the list that `lint provider` prints.
func providerList(findings []providerlint.Finding) render.List[providerFinding] {
	items := make([]providerFinding, len(findings))
	for i, f := range findings {
		items[i] = providerFinding{f.File, f.Line, f.Subject, f.Path, render.Cause{Reason: f.Reason.String(), Message: f.Message}}
	}
	return render.NewList("ProviderFindingList", items)
}

func providerCommand(a *frame.App) *cobra.Command {
	var output frame.Output
	c := &cobra.Command{
		Use:   "provider DIRECTORY...",
		Short: "Check that the key of an external resource can't change, and that exceptions have a reason",
		Long: "Check the CRDs and the Go source of a provider of managed resources.\n\n" +
			"A field that makes the key of an external resource must not change, and must not be removed: rules\n" +
			"of the CRD refuse both. The rules are evaluated on an object before and after the change, as the\n" +
			"API server does it. A CRD of the category managed says which fields make the key:\n\n" +
			"  // +kubebuilder:metadata:annotations=\"" + fieldmigration.AnnotationKeyFields + "=spec.forProvider.group=Immutable,spec.forProvider.member=Mutable\"\n" +
			"  // +kubebuilder:metadata:annotations=\"" + fieldmigration.AnnotationKeyFields + "=" + fieldmigration.NoKeyFields + "\"\n\n" +
			"Mutable fields are exempt. None means that the external system makes the key. fieldmigration.KeyFields\n" +
			"in package github.com/godwit-dev/godwit/externalname/fieldmigration makes the value from a codec, and\n" +
			"fieldmigration.Constraints the rules.\n\n" +
			"In Go files, each crossplane.Exception needs a reason, which the reference of the kind prints.\n\n" +
			"Write directories as for the go command.\n\n" +
			"Exit codes: 0 no findings, 1 findings, 2 error, for example nothing to check.",
		Example: "  # Check all of a provider\n" +
			"  " + a.Program + " lint provider ./...\n\n" +
			"  # Check the CRDs alone, for a program\n" +
			"  " + a.Program + " lint provider ./package/crds -o json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkCall(c, args, "your CRDs and kinds, such as ./..."); err != nil {
				return err
			}
			findings, err := providerlint.Check(c.Context(), args...)
			if err != nil {
				return err
			}
			return end(a, output, providerList(findings), findings)
		},
	}
	output.AddDataTo(c, providerList(nil))
	return c
}
