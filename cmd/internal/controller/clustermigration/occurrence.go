package clustermigration

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// Occurrences are the conditions and events that have a reason. A reason that ends a migration is
// of the rollback's first event too.
func Occurrences(reason *godwit.Reason) []status.Occurrence {
	switch reason {
	case hubapi.ReasonSucceeded:
		return []status.Occurrence{{Condition: hubapi.ConditionReady, EventType: corev1.EventTypeNormal}}
	case hubapi.ReasonInProgress, hubapi.ReasonWaiting:
		return []status.Occurrence{{Condition: hubapi.ConditionReconciling, EventType: corev1.EventTypeNormal}}
	case hubapi.ReasonIncomplete, hubapi.ReasonCommandNotSent:
		return []status.Occurrence{{Condition: hubapi.ConditionReconciling, EventType: corev1.EventTypeWarning}}
	case hubapi.ReasonRequestDenied:
		return []status.Occurrence{{Condition: hubapi.ConditionRequestDenied, EventType: corev1.EventTypeWarning}}
	case hubapi.ReasonCertificateIssued:
		return []status.Occurrence{{EventType: corev1.EventTypeWarning}}
	case hubapi.ReasonStateLost:
		return []status.Occurrence{{Condition: hubapi.ConditionStalled}}
	}
	return []status.Occurrence{{Condition: hubapi.ConditionStalled, EventType: corev1.EventTypeWarning}}
}
