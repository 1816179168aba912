package crd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

type checkOptions struct {
	*frame.App
	manifest.Input
	references bool
	output     frame.Output
}

func checkCommand(a *frame.App) *cobra.Command {
	o := &checkOptions{App: a}
	c := &cobra.Command{
		Use:   "check -f {FILE|DIR|-}...",
		Short: "Check whether the CRDs of the next release are safe for the cluster; changes nothing",
		Long: "Compare the CRDs of your next release with the CRDs of the cluster. The check finds CRDs that\n" +
			"the API server would refuse. It also finds CRDs that the API server would accept although\n" +
			"stored objects could then no longer be read or applied.\n\n" +
			"The command changes nothing. It reads, and it sends the CRDs to the API server as a dry run.\n" +
			"Where the release removes a version, it reads the metadata of all objects, page by page. Where the\n" +
			"release stops serving a version, it looks for what else names the version, as `" + a.Program + " crd doctor`\n" +
			"does: that reads the metadata of all objects of the cluster. See --references.\n\n" +
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
			"  # In a pipeline that shows findings at the file, as GitHub code scanning does\n" +
			"  " + a.Program + " crd check -f config/crd -o sarif > godwit.sarif\n\n" +
			"  # Check a release of another project before you install it, for a script\n" +
			"  " + a.Program + " crd check -f release.yaml -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return frame.Usagef("specify files with -f: %s", a.Program+" crd check -f "+strings.Join(args, " -f "))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Parse(c, a.Streams.In); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.AddTo(c, "the CRDs of the next release")
	frame.AddReferences(c, &o.references)
	o.output.AddFindingsTo(c, crdreport.CheckList(nil))
	return c
}

func (o *checkOptions) run(ctx context.Context) error {
	releases, err := o.Read(o.Streams.In)
	if err != nil {
		return err
	}
	names := make([]string, len(releases))
	for i, r := range releases {
		names[i] = r.Name
	}
	s, err := connect(ctx, o.App, frame.Purpose{Command: crdpermission.Check, Scope: names}, storageversion.Options{})
	if err != nil {
		return err
	}
	checker, err := releasecheck.New(s.Config, releasecheck.Options{})
	if err != nil {
		return err
	}
	checks := make([]releasecheck.Check, len(releases))
	for i, r := range releases {
		if checks[i], err = check(frame.About(ctx, r.Name), checker, r); err != nil {
			return s.explain(ctx, err)
		}
	}
	if err := s.checkReferences(ctx, releases, checks, o.references); err != nil {
		return s.explain(ctx, err)
	}
	items := make([]crdreport.Check, len(checks))
	for i, c := range checks {
		items[i] = s.wordCheck(ctx, c)
		if source := releases[i].Source; source != manifest.Stdin {
			items[i].Source = source
		}
	}
	err = frame.Write(o.Streams.Out, o.output, crdreport.CheckList(items), func(w io.Writer) error {
		switch o.output.Value {
		case frame.SARIF:
			return crdreport.WriteSARIF(w, items, frame.Build().Version, &releasecheck.Reasons, &decision.Reasons, &doctor.Reasons)
		case frame.JUnit:
			return crdreport.WriteJUnit(w, items)
		case frame.Markdown:
			return crdreport.WriteCheckPage(w, items)
		}
		return crdreport.WriteChecks(w, o.Style(o.Streams.Out, o.output), items)
	})
	if err != nil {
		return err
	}
	return frame.Exit(checkCode(items))
}

func check(ctx context.Context, checker *releasecheck.Checker, r manifest.Release) (c releasecheck.Check, err error) {
	if r.CRD == nil {
		return releasecheck.Check{Name: r.Name}.With(releasecheck.Finding{
			Result: releasecheck.Refused,
			Finding: godwit.Finding{
				Reason:  render.ReasonAPIVersionRemoved,
				Message: r.Name + " is written in apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed",
				Fix:     godwit.Do("write it in apiextensions.k8s.io/v1: the schema moves into each version"),
			},
		}), nil
	}
	err = retryRead(ctx, func() (err error) {
		c, err = checker.Check(ctx, r.CRD)
		return err
	})
	return c, err
}

// wordCheck words the fixes of a check.
func (s *session) wordCheck(ctx context.Context, c releasecheck.Check) crdreport.Check {
	item := crdreport.Check{Name: c.Name, Result: string(c.Result), RemovedVersions: c.RemovedVersions}
	for _, f := range c.Reasons {
		if render.IsForbidden(f.Reason) {
			f.Fix = godwit.Do(s.Purpose.Remedy(s.WhoAmI(ctx)))
		}
		item.Reasons = append(item.Reasons, crdreport.NewFinding(f, s.remedies))
	}
	return item
}

// checkReferences adds what else names versions of the cluster's CRDs that the releases do not serve. One scan is for all releases.
func (s *session) checkReferences(ctx context.Context, releases []manifest.Release, checks []releasecheck.Check, read bool) error {
	d, err := doctor.New(s.Config, nil)
	if err != nil {
		return err
	}
	var subjects []doctor.Subject
	at := map[string]int{}
	for i, r := range releases {
		if r.CRD == nil || checks[i].Result == releasecheck.Refused {
			continue // nothing changes for the objects
		}
		live, err := d.CRD(frame.About(ctx, r.Name), r.Name)
		switch {
		case errors.Is(err, decision.ErrNotFound), apierrors.IsForbidden(err): // which the check says
			continue
		case err != nil:
			return err
		}
		if subject := doctor.Release(live, r.CRD); subject.Drops() {
			subjects, at[r.Name] = append(subjects, subject), i
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	facts := doctor.Facts{Subjects: subjects}
	if read {
		show, done := ShowScan(s.console)
		facts, err = d.Observe(ctx, subjects, show)
		done()
		if err != nil {
			return err
		}
	}
	for _, one := range doctor.For(facts) {
		c := &checks[at[one.CRD]]
		*c = c.With(releaseFindings(one)...).With(s.unreadReferences(ctx, facts, read)...)
	}
	return nil
}

// releaseFindings are Unsafe where the release would break something.
func releaseFindings(d doctor.Diagnosis) []releasecheck.Finding {
	var all []releasecheck.Finding
	for _, f := range d.Findings {
		result := releasecheck.Safe
		if f.Broken() {
			result = releasecheck.Unsafe
		}
		all = append(all, releasecheck.Finding{Result: result, Finding: f.Finding})
	}
	return all
}

// unreadReferences is a note if the user does not want to know.
func (s *session) unreadReferences(ctx context.Context, f doctor.Facts, read bool) []releasecheck.Finding {
	const what = "what else names a version that the release does not serve is not known"
	switch {
	case !read:
		return []releasecheck.Finding{{
			Result: releasecheck.Safe,
			Finding: godwit.Finding{Reason: releasecheck.ReasonReferencesUnread, Message: what + ": the check was told not to look",
				Fix: godwit.Do("check without --references=false")},
		}}
	case len(f.Unread) == 0:
		return nil
	}
	u := f.Unread[0]
	if render.IsForbidden(u.Reason) {
		p := s.Purpose
		p.Command, p.Scope = crdpermission.Doctor, nil
		u.Fix = godwit.Do(p.Remedy(s.WhoAmI(ctx)))
	}
	return []releasecheck.Finding{{
		Result: releasecheck.Unknown,
		Finding: godwit.Finding{Reason: releasecheck.ReasonReferencesUnread, Fix: u.Fix,
			Message: fmt.Sprintf("%s: %s can't be read, such as %s: %s", what, render.Count(int64(len(f.Unread)), "resource", "resources"), u.Resource, u.Message)},
	}}
}

func checkCode(items []crdreport.Check) frame.Code {
	code := frame.OK
	for _, item := range items {
		switch releasecheck.Result(item.Result) {
		case releasecheck.Refused, releasecheck.Unsafe:
			code = frame.Worst(code, frame.Refused)
		case releasecheck.Unknown:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
