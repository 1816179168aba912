package crd

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

type checkOptions struct {
	*cli.App
	input
	output cli.Output
}

func checkCommand(a *cli.App) *cobra.Command {
	o := &checkOptions{App: a}
	c := &cobra.Command{
		Use:   "check -f {FILE|DIR|-}...",
		Short: "Check whether the CRDs of the next release are safe for the cluster; changes nothing",
		Long: "Compare the CRDs of your next release with the CRDs of the cluster. The check finds CRDs that\n" +
			"the API server would refuse. It also finds CRDs that the API server would accept although\n" +
			"stored objects could then no longer be read or applied.\n\n" +
			"The command changes nothing. It reads, and it sends the CRDs to the API server as a dry run.\n" +
			"Where the release removes a version, it reads the metadata of all objects, page by page.\n\n" +
			"Files are YAML or JSON with any number of documents. The check reads the CRDs in them, also in\n" +
			"lists, and ignores other kinds. It ignores CRDs that only the cluster has.\n\n" +
			"Results: Safe, Refused (the API server would refuse the CRD), Unsafe (the API server would\n" +
			"accept it, and objects would be unreadable), Unknown (the cluster does not let the check read\n" +
			"what it needs). Reasons marked with · are notes.\n" +
			"Exit codes: 0 all are Safe, 3 some are Refused or Unsafe, 1 some are Unknown, 2 error.",
		Example: "  # In the pipeline of your operator, against a cluster with the previous release\n" +
			"  " + a.Program + " crd check -f config/crd\n\n" +
			"  # Check what a chart or an overlay renders\n" +
			"  kubectl kustomize config/default | " + a.Program + " crd check -f -\n\n" +
			"  # Check a release of another project before you install it, for a script\n" +
			"  " + a.Program + " crd check -f release.yaml -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("give files with -f: %s", a.Program+" crd check -f "+strings.Join(args, " -f "))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.parse(c, a.Streams.In)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, crdreport.CheckList(nil), err)
		},
	}
	o.addTo(c)
	o.output.AddTo(c)
	return c
}

func (o *checkOptions) run(ctx context.Context) error {
	releases, err := o.read(o.Streams.In)
	if err != nil {
		return err
	}
	names := make([]string, len(releases))
	for i, r := range releases {
		names[i] = r.name
	}
	s, err := connect(ctx, o.App, cli.Purpose{Program: o.Program, Command: permission.CRDCheck, Scope: names}, storageversion.Options{})
	if err != nil {
		return err
	}
	checker, err := releasecheck.New(s.Config, releasecheck.Options{})
	if err != nil {
		return err
	}
	items := make([]crdreport.Check, len(releases))
	for i, r := range releases {
		if items[i], err = s.check(cli.About(ctx, r.name), checker, r); err != nil {
			return s.explain(ctx, err)
		}
	}
	err = cli.Write(o.Streams.Out, o.output, crdreport.CheckList(items), func(w io.Writer) error {
		return crdreport.WriteChecks(w, o.Style(o.Streams.Out, o.output), items)
	})
	if err != nil {
		return err
	}
	return cli.Exit(checkCode(items))
}

func (s *session) check(ctx context.Context, checker *releasecheck.Checker, r release) (crdreport.Check, error) {
	if r.crd == nil {
		return crdreport.Check{Name: r.name, Result: string(releasecheck.Refused), Reasons: []crdreport.Finding{{
			Result:  releasecheck.Refused,
			Reason:  report.ReasonAPIVersionRemoved,
			Message: r.name + " is written in apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed",
			Remedy:  "write it in apiextensions.k8s.io/v1: the schema moves into each version",
		}}}, nil
	}
	var c releasecheck.Check
	err := retryRead(ctx, func() (err error) {
		c, err = checker.Check(ctx, r.crd)
		return err
	})
	item := crdreport.Check{Name: c.Name, Result: string(c.Result), RemovedVersions: c.RemovedVersions}
	for _, f := range c.Reasons {
		if f.Reason == storageversion.ReasonForbidden {
			f.Fix = godwit.Do(s.Purpose.Remedy(s.WhoAmI(ctx)))
		}
		item.Reasons = append(item.Reasons, crdreport.NewFinding(f, s.remedies))
	}
	return item, err
}

func checkCode(items []crdreport.Check) cli.Code {
	code := cli.OK
	for _, item := range items {
		switch releasecheck.Result(item.Result) {
		case releasecheck.Refused, releasecheck.Unsafe:
			code = cli.Worst(code, cli.Refused)
		case releasecheck.Unknown:
			code = cli.Worst(code, cli.Pending)
		}
	}
	return code
}
