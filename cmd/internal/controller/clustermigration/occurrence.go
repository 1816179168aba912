package clustermigration

import (
	corev1 "k8s.io/api/core/v1"

	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Occurrences are the conditions and events that have a reason. A reason that ends a migration is
// of the rollback's first event too.
func Occurrences(reason string) []remedy.Occurrence {
	switch reason {
	case hubapi.ReasonSucceeded:
		return []remedy.Occurrence{{Condition: hubapi.ConditionReady, EventType: corev1.EventTypeNormal}}
	case hubapi.ReasonInProgress, hubapi.ReasonWaiting:
		return []remedy.Occurrence{{Condition: hubapi.ConditionReconciling, EventType: corev1.EventTypeNormal}}
	case hubapi.ReasonIncomplete, hubapi.ReasonCommandNotSent:
		return []remedy.Occurrence{{Condition: hubapi.ConditionReconciling, EventType: corev1.EventTypeWarning}}
	case hubapi.ReasonStateLost:
		return []remedy.Occurrence{{Condition: hubapi.ConditionStalled}}
	}
	return []remedy.Occurrence{{Condition: hubapi.ConditionStalled, EventType: corev1.EventTypeWarning}}
}
