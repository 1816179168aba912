package revisionupgrade

import (
	"cmp"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// suspended is the Summary while spec.suspend is true.
var suspended = status.Summary{Reason: ReasonSuspended.Name, Message: "spec.suspend is true; set it to false to resume"}

// summaryOf returns the Summary of an upgrade.
func summaryOf(one *v1alpha1.ControllerRevisionUpgrade, r revision.Result) status.Summary {
	remedies := remedy.Manager.OfUpgrade(one.Namespace, one.Name)
	s := status.Summary{State: status.StateReconciling, Reason: cmp.Or(r.Reason.String(), string(r.Phase)), Message: r.Message}
	switch {
	case r.Phase.Ended(), r.Phase == revision.Retained: // the source waits for the end of its retention
		s.State = status.StateReady
	case r.Phase == revision.Failed:
		s.State = status.StateStalled
		s.Message += advice(r.Item, remedies)
	case r.Reason == decision.ReasonForbidden:
		s.State = status.StateStalled
	case r.Reason == decision.ReasonRunning && one.Spec.Rollback:
		s.Message += "; " + remedies.Text(r.RollbackFix())
	case r.Reason == decision.ReasonRunning: // waiting helps, and so does the user
		s.Message += "; " + remedies.Text(r.Fix())
	}
	return s
}

// advice returns the fix of a revision that needs user action, or that of its reason.
func advice(i decision.Item, remedies remedy.Writer) string {
	switch fix := i.Fix(); {
	case i.Reason == nil || !i.Reason.UserAction:
		return ""
	case fix != nil:
		return "; " + remedies.Text(fix)
	}
	return ". " + remedies.Sentence(i.Reason.Fix)
}

// errorSummary returns the Summary of an error that ended a scan.
func errorSummary(err error) status.Summary {
	if s, found := status.FromError(err); found {
		return s
	}
	if apierrors.IsForbidden(err) {
		return status.Summary{State: status.StateStalled, Reason: decision.ReasonForbidden.Name,
			Message: err.Error() + "; grant it: godwit rbac --controller=revisionUpgrader | kubectl apply -f -"}
	}
	return status.Summary{State: status.StateReconciling, Reason: decision.ReasonUnanswered.Name, Message: err.Error()}
}

// upgrading is the Summary of a trigger whose upgrades are created or under way.
func (t *Triggers) upgrading(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) status.Summary {
	pace := "limits.maxWritesPerSecond of the manager is 0, which means no limit"
	if t.MaxWritesPerSecond > 0 {
		pace = fmt.Sprintf("limits.maxWritesPerSecond of the manager allows %g writes per second", t.MaxWritesPerSecond)
	}
	return status.Summary{State: status.StateReconciling, Reason: ReasonUpgrading.Name, Message: fmt.Sprintf(
		"Upgrades are under way: see status.counts, and each upgrade for what it waits for. %s, and spec.maxConcurrent %d upgrades at once.", pace, maxConcurrent(spec))}
}

// summaryOf returns the Summary of the counts of a trigger.
func (t *Triggers) summaryOf(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec, c v1alpha1.RevisionCounts) status.Summary {
	waiting, stuck := c.Pending+c.Deferred+c.InUse, c.Blocked+c.Failed
	switch {
	case waiting+stuck == 0:
		return status.Summary{State: status.StateReady, Reason: ReasonSucceeded.Name, Message: "nothing is left to upgrade"}
	case spec.Mode == v1alpha1.ModeVerify:
		return status.Summary{State: status.StateStalled, Reason: ReasonNotUpgraded.Name, Message: "revisions are at old versions: see status.versionCounts"}
	case spec.Mode == v1alpha1.ModeDryRun:
		return status.Summary{State: status.StateReady, Reason: ReasonNotUpgraded.Name, Message: "revisions are at old versions, and the mode DryRun upgrades none"}
	case waiting > 0:
		return t.upgrading(spec)
	}
	return status.Summary{State: status.StateStalled, Reason: ReasonUpgradesFailed.Name, Message: "some revisions need user action: see status.failures"}
}

// fill writes a result to a status. If the pass could not read the objects, it keeps the known values.
func fill(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	if r.Phase == revision.Analyzing && s.Phase != "" && s.Phase != v1alpha1.UpgradePhase(revision.Pending) {
		return
	}
	s.Phase = v1alpha1.UpgradePhase(r.Phase)
	fillSource(s, r)
	fillReplacement(s, r)
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

// fillSource keeps the source as it was when it was found first: no backup has the resourceVersion after Godwit's own
// writes. The version and the form may be added later.
func fillSource(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	if r.ResourceVersion == "" {
		return // it is deleted, or was not read
	}
	if s.Source == nil || s.Source.UID != r.UID {
		s.Source = &v1alpha1.RevisionSource{UID: r.UID, Hash: r.Hash, ResourceVersion: r.ResourceVersion}
	}
	if r.Version != "" {
		s.Source.Version, s.Source.Form = r.Version, r.Form
	}
}

// fillReplacement keeps the known data of the replacement if the pass read only its name.
func fillReplacement(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
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
