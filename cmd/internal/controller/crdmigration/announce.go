package crdmigration

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/kube"
)

const eventAction = "MigrateStorageVersion"

// announcement is the event for a change of the status.
type announcement struct {
	eventType, reason, note string
}

// announcementFor is empty where the verdict is the one that was known: a pass
// that fails like the one before is no news. Nor is progress.
func announcementFor(before *v1alpha1.CRDMigrationStatus, v verdict) announcement {
	known := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if known != nil && known.Reason == v.reason && known.Message == v.message {
		return announcement{}
	}
	kind := corev1.EventTypeNormal
	switch {
	case v.stalled, v.reason == v1alpha1.ReasonFailed, v.reason == v1alpha1.ReasonObjectsUnlisted, len(v.blocked) > 0:
		kind = corev1.EventTypeWarning
	case v.ready, v.reason == v1alpha1.ReasonSuspended, v.reason == v1alpha1.ReasonSettling:
	default:
		return announcement{}
	}
	return announcement{eventType: kind, reason: v.reason, note: kube.EventNote(v.message)}
}

// announceAgain is how long an API server keeps events, by default.
const announceAgain = time.Hour

// announce records an event. A migration that does not converge is announced again
// each hour, since its event is gone by then.
func (w *work) announce(before *v1alpha1.CRDMigrationStatus, v verdict, now time.Time) {
	if v.reason == v1alpha1.ReasonNotConverging && now.Sub(w.reported) >= announceAgain {
		before, w.reported = &v1alpha1.CRDMigrationStatus{}, now
	}
	if a := announcementFor(before, v); a.reason != "" {
		w.Recorder.Eventf(w.status.written, nil, a.eventType, a.reason, eventAction, "%s", a.note)
	}
}
