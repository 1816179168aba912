package revisionupgrade

import (
	"cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// summaryOf summarizes how far an upgrade is.
func summaryOf(r revision.Result) status.Summary {
	s := status.Summary{State: status.StateReconciling, Reason: cmp.Or(r.Reason, string(r.Phase)), Message: r.Message}
	switch {
	case r.Phase.Ended(), r.Phase == revision.Retained: // the source waits for the end of its retention
		s.State = status.StateReady
	case r.Phase == revision.Failed:
		s.State = status.StateStalled
		if what := remedy.For(r.Item, ""); what.UserAction {
			s.Message += ". " + what.Remedy
		}
	case r.Reason == revision.ReasonForbidden:
		s.State = status.StateStalled
	}
	return s
}

// suspended is the Summary while spec.suspend is true.
var suspended = status.Summary{Reason: ReasonSuspended, Message: "spec.suspend is true; set it to false to resume"}

// errorSummary summarizes an error that ended a scan.
func errorSummary(err error) status.Summary {
	if s, found := status.FromError(err); found {
		return s
	}
	if apierrors.IsForbidden(err) {
		return status.Summary{State: status.StateStalled, Reason: revision.ReasonForbidden,
			Message: err.Error() + "; grant it: godwit rbac --controller=revisionUpgrader | kubectl apply -f -"}
	}
	return status.Summary{State: status.StateReconciling, Reason: revision.ReasonUnanswered, Message: err.Error()}
}

// maxSamples of places and losses that a status names.
const maxSamples = 20

// fill writes down a result. What nobody could read stays as it was found before.
func fill(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	if r.Phase == revision.Analyzing && s.Phase != "" && s.Phase != v1alpha1.UpgradePhase(revision.Pending) {
		return
	}
	s.Phase = v1alpha1.UpgradePhase(r.Phase)
	fillSource(s, r)
	fillResult(s, r)
	s.Losses = r.Losses[:min(len(r.Losses), maxSamples)]
	s.References = nil
	for _, p := range r.References[:min(len(r.References), maxSamples)] {
		s.References = append(s.References, v1alpha1.RevisionReference(p))
	}
	s.RetainedUntil = nil
	if !r.Until.IsZero() {
		s.RetainedUntil = &metav1.Time{Time: r.Until}
	}
}

// fillSource keeps what the source was when it was found first: what our own writes
// make of its resourceVersion is in no backup. Only what can be read of it may be known
// later.
func fillSource(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	if r.ResourceVersion == "" {
		return // it is gone, or was not read
	}
	if s.Source == nil || s.Source.UID != r.UID {
		s.Source = &v1alpha1.RevisionSource{UID: r.UID, Hash: r.Hash, ResourceVersion: r.ResourceVersion}
	}
	if r.Version != "" {
		s.Source.Version, s.Source.Form = r.Version, r.Form
	}
}

// fillResult keeps what is known of the successor where its name is all that was read.
func fillResult(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	if r.Replacement == "" {
		return
	}
	if s.Replacement == nil || s.Replacement.Name != r.Replacement || r.ReplacementUID != "" && s.Replacement.UID != r.ReplacementUID {
		s.Replacement = &v1alpha1.RevisionReplacement{Name: r.Replacement}
	}
	if r.ReplacementUID != "" {
		s.Replacement.UID, s.Replacement.Hash = r.ReplacementUID, r.ReplacementHash
	}
	if r.Target != "" {
		s.Replacement.Version = r.Target
	}
}
