package manager

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/kube"
)

func summaryOf(s hub.State) status.Summary {
	reconciling := func(reason *godwit.Reason, message string) status.Summary {
		return status.Summary{State: status.StateReconciling, Reason: reason.Name, Message: message}
	}
	warns := func(reason *godwit.Reason, message string) status.Summary {
		return status.Summary{State: status.StateReconciling, Reason: reason.Name, Message: message, Warning: true}
	}
	switch unsent := s.Unsent(); {
	case unsent != "":
		return warns(api.ReasonCommandNotSent, "phase "+string(s.Phase)+": "+unsent)
	case s.Phase == api.PhasePending && s.WaitingFor != "":
		return reconciling(api.ReasonWaiting, "migration "+s.WaitingFor+" moves one of the clusters; this one starts when it has ended")
	case s.Settled() && s.LeftBehind() != "":
		return status.Summary{State: status.StateStalled, Reason: api.ReasonLeftBehind.Name, Message: "the migration has ended, and has left something behind: " + s.LeftBehind()}
	case s.Phase == api.PhaseFailed && s.Settled():
		return status.Summary{State: status.StateStalled, Reason: s.Reason, Message: s.Message}
	case s.Phase == api.PhaseFailed:
		return warns(api.ReasonIncomplete, "the migration failed, and its rollback is not finished: see condition "+api.ConditionRolledBack+". "+s.Message)
	case s.Phase == api.PhaseCompleted && !s.Settled():
		return warns(api.ReasonIncomplete, "the clusters have moved, and the cleanup is not finished: see condition "+api.ConditionCleaned)
	case s.Phase == api.PhaseCompleted && s.Reason == api.ReasonPartiallyRegistered.Name:
		return status.Summary{State: status.StateStalled, Reason: s.Reason, Message: partialMessage(s)}
	case s.Phase == api.PhaseCompleted && s.Counts().Gone > 0:
		return status.Summary{State: status.StateReady, Reason: api.ReasonSucceeded.Name, Message: "every cluster has moved that a user has not deleted: see status.failures"}
	case s.Phase == api.PhaseCompleted:
		return status.Summary{State: status.StateReady, Reason: api.ReasonSucceeded.Name, Message: "every cluster has moved"}
	}
	return reconciling(api.ReasonInProgress, "the migration is in phase "+string(s.Phase))
}

// partialMessage says what has become of the clusters that were not registered.
func partialMessage(s hub.State) string {
	if s.Counts().Gone > 0 {
		return "some clusters were not registered at the target hub, and are back at the source hub, or were deleted there: see status.failures"
	}
	return "some clusters were not registered at the target hub, and are back at the source hub: see status.failures"
}

// fill sets the status from a state.
func fill(m *api.ManagedClusterMigration, s hub.State, shards int, now time.Time) {
	m.Status.Phase = s.Phase
	m.Status.Progress = s.Progress(shards)
	counts := s.Counts()
	m.Status.Counts = &counts
	m.Status.Places = s.Places()
	m.Status.Failures = s.Failures()
	if m.Status.StartTime == nil && s.Phase != api.PhasePending {
		m.Status.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	switch {
	case !s.Settled():
		m.Status.CompletionTime = nil
	case m.Status.CompletionTime == nil:
		m.Status.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	o, conditions := statusObject{m}, s.Conditions()
	m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool {
		return meta.FindStatusCondition(conditions, c.Type) == nil && !slices.Contains(kstatus, c.Type)
	})
	for _, c := range conditions {
		status.SetCondition(o, c.Type, c.Status == metav1.ConditionTrue, c.Reason, c.Message)
	}
	summaryOf(s).Apply(o)
}

// kstatus are the conditions for kstatus; exactly one of them is True.
var kstatus = []string{status.Ready, status.Reconciling, status.Stalled}

// statusObject implements status.Object for a migration.
type statusObject struct{ *api.ManagedClusterMigration }

// Conditions implements status.Object.
func (c statusObject) Conditions() *[]metav1.Condition { return &c.Status.Conditions }

// ObservedGeneration implements status.Object.
func (c statusObject) ObservedGeneration() *int64 { return &c.Status.ObservedGeneration }

// announce records the events and metrics of a stored change.
func (r *Reconciler) announce(m *api.ManagedClusterMigration, before, after hub.State, now time.Time) {
	if before.Phase != after.Phase && !before.Since.IsZero() && before.Phase != api.PhasePending {
		r.Metrics.phaseEnded(before.Phase, now.Sub(before.Since))
	}
	for _, a := range Announcements(before, after) {
		r.Recorder.Eventf(m, nil, a.Type, a.Reason, kube.EventAction("Migrate", a.Number), "%s", kube.EventNote(a.Note))
	}
}

// Announcement is an event of a migration.
type Announcement struct {
	Type   string // Normal or Warning
	Reason string // a documented constant
	Note   string
	Number int // of several with the same reason, from 0
}

// Announcements returns the events of a change of state.
func Announcements(before, after hub.State) []Announcement {
	var all []Announcement
	if unsent := after.Unsent(); unsent != "" && unsent != before.Unsent() {
		all = append(all, Announcement{Type: corev1.EventTypeWarning, Reason: api.ReasonCommandNotSent.Name, Note: unsent})
	}
	if denied := after.Denied(); denied != before.Denied() {
		all = append(all, Announcement{Type: corev1.EventTypeWarning, Reason: api.ReasonRequestDenied.Name, Note: denied})
	}
	if !slices.Equal(before.Warnings, after.Warnings) {
		for _, w := range after.Notes() {
			all = append(all, Announcement{Type: corev1.EventTypeWarning, Reason: w.Reason, Note: w.Message})
		}
	}
	if !before.Settled() && after.Settled() {
		for n, note := range after.NotesOfCertificates() {
			all = append(all, Announcement{corev1.EventTypeWarning, api.ReasonCertificateIssued.Name, note, n})
		}
	}
	entered := before.Phase != after.Phase
	switch sum := summaryOf(after); {
	case entered && after.Phase == api.PhaseRollbacking:
		all = append(all, Announcement{Type: corev1.EventTypeWarning, Reason: after.Reason, Note: "the rollback begins: " + after.Message})
	case entered && after.Phase == api.PhaseCompleted && !after.Settled():
		all = append(all, Announcement{Type: corev1.EventTypeWarning, Reason: api.ReasonIncomplete.Name, Note: cleanupMessage(after)})
	case entered, !before.Settled() && after.Settled():
		all = append(all, Announcement{Type: sum.EventType(), Reason: sum.Reason, Note: sum.Message})
	}
	return all
}

// cleanupMessage returns what the cleanup waits for.
func cleanupMessage(s hub.State) string {
	if c := meta.FindStatusCondition(s.Conditions(), api.ConditionCleaned); c != nil {
		return "the cleanup is not finished: " + c.Message
	}
	return "the cleanup is not finished"
}

// announceLeft records what a migration has left behind, in events that name all clusters, and in the log: a namespace that is being deleted takes
// no event.
func (r *Reconciler) announceLeft(ctx context.Context, m *api.ManagedClusterMigration, introduction string, s hub.State) {
	for n, note := range s.NotesOfLeft() {
		log.FromContext(ctx).Info("A migration has left something behind", "migration", client.ObjectKeyFromObject(m), "uid", m.UID, "note", introduction+note)
		r.Recorder.Eventf(m, nil, corev1.EventTypeWarning, api.ReasonLeftBehind.Name, kube.EventAction("Migrate", n), "%s", kube.EventNote(introduction+note))
	}
}

func (r *Reconciler) warn(m *api.ManagedClusterMigration, reason, note string) {
	r.Recorder.Eventf(m, nil, corev1.EventTypeWarning, reason, "Migrate", "%s", kube.EventNote(note))
}
