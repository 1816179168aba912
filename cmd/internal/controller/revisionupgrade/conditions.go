package revisionupgrade

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/revision"
)

// verdict is what conditions say: at most one of the three is true.
type verdict struct {
	ready, working, stalled bool
	reason, message         string
}

// judge an upgrade by where it is.
func judge(r revision.Result) verdict {
	v := verdict{reason: r.Reason, message: r.Message}
	if v.reason == "" {
		v.reason = string(r.Phase)
	}
	switch {
	case r.Phase.Ended(), r.Phase == revision.Retained: // everybody refers to the successor; what is left is a matter of time
		v.ready = true
	case r.Phase == revision.Failed:
		v.stalled = true
		if what := remedy.For(r.Item, ""); what.UserAction {
			v.message += ". " + what.Remedy
		}
	case r.Reason == revision.ReasonForbidden:
		v.stalled = true
	default:
		v.working = true
	}
	return v
}

// suspended is the verdict while the spec says to wait: none of the three.
var suspended = verdict{reason: ReasonSuspended, message: "spec.suspend says so; set it to false to go on"}

// settled is an error that says itself what the conditions are to say: looking again
// soon would not help.
type settled struct{ verdict }

func (s *settled) Error() string { return s.reason + ": " + s.message }

// trouble is for somebody to mend.
func trouble(reason, message string) error {
	return &settled{verdict{stalled: true, reason: reason, message: message}}
}

// troubled is the verdict where an error ended a look.
func troubled(err error) verdict {
	if known := (*settled)(nil); errors.As(err, &known) {
		return known.verdict
	}
	if apierrors.IsForbidden(err) {
		return verdict{stalled: true, reason: revision.ReasonForbidden,
			message: err.Error() + "; grant it: godwit rbac --controller=revisionUpgrader | kubectl apply -f -"}
	}
	return verdict{working: true, reason: revision.ReasonUnanswered, message: err.Error()}
}

func setConditions(conditions *[]metav1.Condition, generation int64, v verdict) {
	for _, c := range []struct {
		kind   string
		status bool
	}{{v1alpha1.ConditionReady, v.ready}, {v1alpha1.ConditionReconciling, v.working}, {v1alpha1.ConditionStalled, v.stalled}} {
		status := metav1.ConditionFalse
		if c.status {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: c.kind, Status: status, Reason: v.reason, Message: strings.ToValidUTF8(v.message[:min(len(v.message), maxMessage)], ""), ObservedGeneration: generation,
		})
	}
}

// maxMessage is what a condition takes; a longer one would have the API server refuse
// the status, and what a webhook says is in one.
const maxMessage = 32768

// announce tells whoever watches events.
func (v verdict) announce(to events.EventRecorder, about runtime.Object, action string) {
	kind := corev1.EventTypeNormal
	if v.stalled {
		kind = corev1.EventTypeWarning
	}
	to.Eventf(about, nil, kind, v.reason, action, "%s", kube.EventNote(v.message))
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
