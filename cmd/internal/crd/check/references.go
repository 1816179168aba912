package check

import (
	"context"
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

// observeReferences adds findings about references to versions that the cluster serves and the release does not. It scans the
// cluster once for all CRDs.
func (s *session) observeReferences(ctx context.Context, all []release, read bool) error {
	var subjects []doctor.Subject
	at := map[string]*release{}
	for i := range all {
		r := &all[i]
		if r.live == nil || r.check.Result == releasecheck.Refused {
			continue // there is no CRD to compare with, or the API server refuses the release
		}
		if subject := doctor.Release(r.live, r.CRD); subject.Drops() {
			subjects, at[r.Name] = append(subjects, subject), r
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	facts := doctor.Facts{Subjects: subjects}
	if read {
		d, err := doctor.New(s.Config, nil)
		if err != nil {
			return frame.BadKubeconfig(err)
		}
		show, done := crd.ShowScan(s.console)
		facts, err = d.Observe(ctx, subjects, show)
		done()
		if err != nil {
			return s.Explain(ctx, err)
		}
	}
	for i, one := range doctor.For(facts) {
		r := at[one.CRD]
		r.check = r.check.With(releaseFindings(one)...).With(s.unreadReferences(ctx, facts, subjects[i], read)...)
	}
	return nil
}

// releaseFindings returns the findings of a diagnosis. A finding is Unsafe if the release would break something, otherwise a note.
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

// unreadReferences returns a finding if references were not read. It is a note if the user gave --references=false, or if the fault
// is of other objects alone: only their ownerReferences are not known.
func (s *session) unreadReferences(ctx context.Context, f doctor.Facts, of doctor.Subject, read bool) []releasecheck.Finding {
	what := "what else names a version that the release does not serve is not known"
	switch {
	case !read:
		return []releasecheck.Finding{{
			Result: releasecheck.Safe,
			Finding: godwit.Finding{Reason: releasecheck.ReasonReferencesUnread, Message: what + ": the check was told not to look",
				Fix: releasecheck.CheckReferences()},
		}}
	case len(f.Unread) == 0:
		return nil
	}
	unread, result := f.UnreadOf(of), releasecheck.Unknown
	if len(unread) == 0 {
		unread, result = f.Unread, releasecheck.Safe
		what = "which ownerReferences of some other objects name a version that the release does not serve is not known"
	}
	u := unread[0]
	if render.IsForbidden(u.Reason) {
		p := s.Purpose
		p.Command, p.Scope = crdpermission.Doctor, nil
		u.Fix = godwit.Do(p.Remedy(s.WhoAmI(ctx)))
	}
	return []releasecheck.Finding{{
		Result: result,
		Finding: godwit.Finding{Reason: releasecheck.ReasonReferencesUnread, Fix: u.Fix,
			Message: fmt.Sprintf("%s: %s can't be read, such as %s: %s", what, render.Count(int64(len(unread)), "resource", "resources"), u.Resource, u.Line())},
	}}
}
