package manager

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/kube"
)

// summary is which of Ready, Reconciling and Stalled is True, and why.
type summary struct{ condition, reason, message string }

func summaryOf(s hub.State) summary {
	switch unsent := s.Unsent(); {
	case unsent != "":
		return summary{api.ConditionReconciling, api.ReasonCommandNotSent.Name, "phase " + string(s.Phase) + ": " + unsent}
	case s.Phase == api.PhasePending && s.WaitingFor != "":
		return summary{api.ConditionReconciling, api.ReasonWaiting.Name, "migration " + s.WaitingFor + " moves one of the clusters; this one starts when it has ended"}
	case s.Phase == api.PhaseFailed && s.Settled():
		return summary{api.ConditionStalled, s.Reason, s.Message}
	case s.Phase == api.PhaseFailed:
		return summary{api.ConditionReconciling, api.ReasonIncomplete.Name, "the migration failed, and its rollback is not finished: see condition " + api.ConditionRolledBack + ". " + s.Message}
	case s.Phase == api.PhaseCompleted && !s.Settled():
		return summary{api.ConditionReconciling, api.ReasonIncomplete.Name, "the clusters have moved, and the cleanup is not finished: see condition " + api.ConditionCleaned}
	case s.Phase == api.PhaseCompleted && s.Reason == api.ReasonPartiallyRegistered.Name:
		return summary{api.ConditionStalled, s.Reason, "some clusters were not registered at the target hub, and are back at the source hub: see status.failures"}
	case s.Phase == api.PhaseCompleted:
		return summary{api.ConditionReady, api.ReasonSucceeded.Name, "every cluster has moved"}
	}
	return summary{api.ConditionReconciling, api.ReasonInProgress.Name, "the migration is in phase " + string(s.Phase)}
}

// fill writes a state into the status.
func fill(m *api.ManagedClusterMigration, s hub.State, shards int, now time.Time) {
	status := &m.Status
	status.ObservedGeneration = m.Generation
	status.Phase = s.Phase
	status.Progress = s.Progress(shards)
	counts := s.Counts()
	status.Counts = &counts
	status.Failures = s.Failures()
	if status.StartTime == nil && s.Phase != api.PhasePending {
		status.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	switch {
	case !s.Settled():
		status.CompletionTime = nil
	case status.CompletionTime == nil:
		status.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	conditions := s.Conditions()
	setConditions(m, conditions, summaryOf(s), now)
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(kstatus, c.Type) && meta.FindStatusCondition(conditions, c.Type) == nil
	})
}

// kstatus are the conditions of which one is True.
var kstatus = []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled}

// setConditions sets conditions, and those of the summary.
func setConditions(m *api.ManagedClusterMigration, conditions []metav1.Condition, sum summary, now time.Time) {
	for _, kind := range kstatus {
		status := metav1.ConditionFalse
		if kind == sum.condition {
			status = metav1.ConditionTrue
		}
		conditions = append(conditions, metav1.Condition{Type: kind, Status: status, Reason: sum.reason, Message: sum.message})
	}
	for _, c := range conditions {
		c.ObservedGeneration = m.Generation
		if known := meta.FindStatusCondition(m.Status.Conditions, c.Type); known == nil || known.Status != c.Status {
			c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
		}
		meta.SetStatusCondition(&m.Status.Conditions, c)
	}
}

// announce records events and metrics of a change that was written.
func (r *Reconciler) announce(m *api.ManagedClusterMigration, before, after hub.State, now time.Time) {
	if before.Phase != after.Phase && !before.Since.IsZero() && before.Phase != api.PhasePending {
		r.Metrics.phaseEnded(before.Phase, now.Sub(before.Since))
	}
	for _, a := range Announcements(before, after) {
		r.event(m, a.Type, a.Reason, a.Note)
	}
}

// Announcement is an event of a migration.
type Announcement struct {
	// Type is Normal or Warning.
	Type string
	// Reason is a documented constant.
	Reason string
	// Note is the message.
	Note string
}

// Announcements returns the events of a change of state.
func Announcements(before, after hub.State) []Announcement {
	var all []Announcement
	if unsent := after.Unsent(); unsent != "" && unsent != before.Unsent() {
		all = append(all, Announcement{corev1.EventTypeWarning, api.ReasonCommandNotSent.Name, unsent})
	}
	entered := before.Phase != after.Phase
	switch sum := summaryOf(after); {
	case entered && after.Phase == api.PhaseRollbacking:
		all = append(all, Announcement{corev1.EventTypeWarning, after.Reason, "the rollback begins: " + after.Message})
	case entered && after.Phase == api.PhaseCompleted && !after.Settled():
		all = append(all, Announcement{corev1.EventTypeWarning, api.ReasonIncomplete.Name, cleaned(after)})
	case entered, !before.Settled() && after.Settled():
		all = append(all, Announcement{eventType(sum), sum.reason, sum.message})
	}
	return all
}

func eventType(s summary) string {
	if s.condition == api.ConditionStalled || s.reason == api.ReasonIncomplete.Name || s.reason == api.ReasonCommandNotSent.Name {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// cleaned says what the cleanup waits for.
func cleaned(s hub.State) string {
	if c := meta.FindStatusCondition(s.Conditions(), api.ConditionCleaned); c != nil {
		return "the cleanup is not finished: " + c.Message
	}
	return "the cleanup is not finished"
}

func (r *Reconciler) event(m *api.ManagedClusterMigration, kind, reason, note string) {
	r.Recorder.Eventf(m, nil, kind, reason, "Migrate", "%s", kube.EventNote(note))
}
