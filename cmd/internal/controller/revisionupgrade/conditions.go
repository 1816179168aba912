package revisionupgrade

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/revision"
)

// ReasonSuspended says that the spec says to wait.
const ReasonSuspended = "Suspended"

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
	switch r.Phase {
	case revision.Succeeded, revision.Skipped, revision.RolledBack:
		v.ready = true
	case revision.Retained:
		v.ready = true // everybody refers to the successor; what is left is a matter of time
	case revision.Failed:
		v.stalled = true
	default:
		v.working = true
	}
	return v
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
			Type: c.kind, Status: status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
		})
	}
}

// announce tells whoever watches events.
func (v verdict) announce(to events.EventRecorder, about runtime.Object, action string) {
	kind := corev1.EventTypeNormal
	if v.stalled {
		kind = corev1.EventTypeWarning
	}
	to.Eventf(about, nil, kind, v.reason, action, "%s", crdmigrator.EventNote(v.message))
}

// maxSamples of places and losses that a status names.
const maxSamples = 20

// fill writes down a result.
func fill(s *v1alpha1.ControllerRevisionUpgradeStatus, r revision.Result) {
	s.Phase = v1alpha1.UpgradePhase(r.Phase)
	if r.Version != "" {
		s.Source = &v1alpha1.RevisionSource{Version: r.Version, Form: r.Form}
	}
	if r.Successor != "" {
		s.Result = &v1alpha1.RevisionResult{Name: r.Successor, UID: r.SuccessorUID, Version: r.Target}
	}
	s.Losses = r.Losses[:min(len(r.Losses), maxSamples)]
	s.Referrers = nil
	for _, p := range r.Referrers[:min(len(r.Referrers), maxSamples)] {
		s.Referrers = append(s.Referrers, v1alpha1.RevisionReferrer(p))
	}
	s.RetainedUntil = nil
	if !r.Until.IsZero() {
		s.RetainedUntil = &metav1.Time{Time: r.Until}
	}
}
