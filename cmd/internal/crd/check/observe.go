package check

import (
	"context"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

// session is the connection of a check.
type session struct {
	*frame.Connection
	checker *releasecheck.Checker
	console *frame.Console
}

func (o *options) connect(ctx context.Context, all []release) (*session, error) {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	c, err := o.Dial(ctx, frame.Purpose{Command: crdpermission.Check, Scope: names})
	if err != nil {
		return nil, err
	}
	checker, err := releasecheck.New(c.Config, releasecheck.Options{})
	if err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return &session{Connection: c, checker: checker, console: o.Console}, nil
}

// observe reads the cluster, and decides about each CRD.
func (s *session) observe(ctx context.Context, all []release) error {
	for i := range all {
		if err := s.observeOne(frame.About(ctx, all[i].Name), &all[i]); err != nil {
			return s.Explain(ctx, err)
		}
	}
	return nil
}

func (s *session) observeOne(ctx context.Context, r *release) error {
	if r.CRD == nil {
		r.check, r.steps.Result = versionRemoved(r.Name), bridge.Blocked
		return nil
	}
	var facts releasecheck.Facts
	err := crd.RetryRead(ctx, func() (err error) {
		facts, err = s.checker.ObserveFile(ctx, r.CRD, r.Manifest)
		return err
	})
	if err != nil {
		return err
	}
	if r.Source != manifest.Stdin {
		facts.File = r.Source
	}
	return r.decide(facts)
}

// decide decides about a CRD and its steps.
func (r *release) decide(facts releasecheck.Facts) error {
	r.live, r.check = facts.Live, releasecheck.For(facts)
	if r.live == nil && len(facts.Denied) > 0 {
		return nil // without the live CRD, the steps are unknown
	}
	return r.decideSteps()
}

func versionRemoved(name string) releasecheck.Check {
	return releasecheck.Check{Name: name}.With(releasecheck.Finding{
		Result: releasecheck.Refused,
		Finding: godwit.Finding{
			Reason:  render.ReasonAPIVersionRemoved,
			Message: name + " is written in apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed",
			Fix:     render.ReasonAPIVersionRemoved.Fix,
		},
	})
}

// forbidden has the fix of a missing permission.
func (s *session) forbidden(ctx context.Context) func() godwit.Fix {
	return func() godwit.Fix { return godwit.Do(s.Purpose.Remedy(s.WhoAmI(ctx))) }
}

// items returns the checks as items of the output. next tells the user to write or to run the steps. forbidden has the fix of a
// missing permission.
func items(all []release, remedies remedy.Writer, next godwit.Fix, forbidden func() godwit.Fix) []crdreport.Check {
	items := make([]crdreport.Check, len(all))
	for i, r := range all {
		items[i] = crdreport.NewCheck(r.check, r.steps)
		for _, f := range r.check.Reasons {
			switch {
			case render.IsForbidden(f.Reason):
				f.Fix = forbidden()
			case f.Reason == bridge.ReasonStepsReady:
				f.Fix = next
			}
			items[i].Reasons = append(items[i].Reasons, crdreport.NewFinding(f, remedies))
		}
		if r.Source != manifest.Stdin {
			items[i].Source = r.Source
		}
	}
	return items
}
