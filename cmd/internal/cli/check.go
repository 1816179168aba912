package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

type checkOptions struct {
	input
	output format
}

func (a *app) checkCommand() *cobra.Command {
	o := &checkOptions{}
	c := &cobra.Command{
		Use:   "check -f {FILE|DIR|-}...",
		Short: "Tell before a release whether the cluster would refuse its definitions, or strand data",
		Long: "Compare the CustomResourceDefinitions of your next release with those of the cluster:\n" +
			"would the API server refuse them, or would it take them and leave objects behind that\n" +
			"can no longer be read or applied? It changes nothing: it reads, and asks the API server\n" +
			"for a dry run. Where a version goes it reads the metadata of all objects, page by page.\n\n" +
			"Files are YAML or JSON, with any number of documents; lists are looked into, objects of\n" +
			"other kinds passed over. Definitions that are only in the cluster are no matter of it.\n\n" +
			"Verdicts: Safe, Refused (the API server would), Stranding (it would not, and should),\n" +
			"Unknown (what decides can't be read). Reasons marked · are notes.\n" +
			"Exit codes: 0 all are safe, 3 some are refused or stranding, 1 some are unknown, 2 error.",
		Example: "  # In the pipeline of your operator, against a cluster of the last release\n  " + a.program + " crd check -f config/crd\n\n" +
			"  # What a chart or an overlay renders\n  kubectl kustomize config/default | " + a.program + " crd check -f -\n\n" +
			"  # Before you install somebody else's release, for a script\n  " + a.program + " crd check -f release.yaml -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("files are given by -f: %s", a.program+" crd check -f "+strings.Join(args, " -f "))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(c, a.streams.In)
			if err == nil {
				err = a.check(c.Context(), o)
			}
			return listOnError(a.streams.Out, o.output, report.CheckList(nil), err)
		},
	}
	o.addTo(c)
	o.output.addTo(c)
	return c
}

func (a *app) check(ctx context.Context, o *checkOptions) error {
	releases, err := o.read(a.streams.In)
	if err != nil {
		return err
	}
	names := make([]string, len(releases))
	for i, r := range releases {
		names[i] = r.name
	}
	s, err := a.connect(ctx, purpose{program: a.program, command: permission.CRDCheck, scope: names}, crdmigrator.Options{})
	if err != nil {
		return err
	}
	items := make([]report.CRDCheck, len(releases))
	for i, r := range releases {
		if items[i], err = s.check(about(ctx, r.name), r); err != nil {
			return s.explain(ctx, err)
		}
	}
	err = write(a.streams.Out, o.output, report.CheckList(items), func(w io.Writer) error {
		return report.WriteChecks(w, a.style(a.streams.Out, o.output), items)
	})
	if err != nil {
		return err
	}
	return exit(checkCode(items))
}

func (s *session) check(ctx context.Context, r release) (report.CRDCheck, error) {
	if r.crd == nil {
		return report.CRDCheck{Name: r.name, Verdict: string(crdmigrator.Refused), Reasons: []crdmigrator.CheckReason{{
			Verdict: crdmigrator.Refused,
			Reason:  report.ReasonAPIVersionRemoved,
			Message: r.name + " is written in apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed",
			Remedy:  "write it in apiextensions.k8s.io/v1: the schema moves into each version",
		}}}, nil
	}
	var c crdmigrator.Check
	err := patiently(ctx, func() (err error) {
		c, err = s.Check(ctx, r.crd)
		return err
	})
	for i := range c.Reasons {
		if c.Reasons[i].Reason == crdmigrator.ReasonForbidden {
			c.Reasons[i].Remedy = s.purpose.remedy(s.whoAmI(ctx))
		}
	}
	return report.CRDCheck{Name: c.Name, Verdict: string(c.Verdict), RemovedVersions: c.RemovedVersions, Reasons: c.Reasons}, err
}

func checkCode(items []report.CRDCheck) Code {
	code := OK
	for _, item := range items {
		switch crdmigrator.Verdict(item.Verdict) {
		case crdmigrator.Refused, crdmigrator.Stranding:
			code = worst(code, Refused)
		case crdmigrator.Unknown:
			code = worst(code, Pending)
		}
	}
	return code
}
