package crossplane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Difference is one field in which the external resource differs from the spec.
type Difference struct {
	// Field is the path in spec.forProvider, such as "displayName".
	Field string
	// Desired and Observed are the values.
	Desired, Observed string
	// Secret values are not printed.
	Secret bool
}

const (
	// TypeDrift is the type of the condition that reports differences.
	TypeDrift xpv2.ConditionType = "Drift"

	// ReasonDiffers means that the external resource differs from the spec.
	ReasonDiffers xpv2.ConditionReason = "Differs"
	// ReasonInSync means that the external resource is as the spec says.
	ReasonInSync xpv2.ConditionReason = "InSync"
	// ReasonUpdated means that the external resource was updated, and not read since.
	ReasonUpdated xpv2.ConditionReason = "Updated"
)

// Reasons of events.
const (
	reasonDiffers         event.Reason = "ExternalResourceDiffers"
	reasonNameBound       event.Reason = "ExternalNameBound"
	reasonNameNeverFound  event.Reason = "ExternalNameNeverFound"
	reasonOperationFailed event.Reason = "CreationOperationFailed"
)

// driftBytes bounds what a condition and an event show of a diff; an event has 1 KiB.
const driftBytes = 900

// diffText returns one line for each difference. Secret values are not in it.
func diffText(differences []Difference) string {
	lines := make([]string, len(differences))
	for i, d := range differences {
		if d.Secret {
			lines[i] = d.Field + ": differs (secret)"
			continue
		}
		lines[i] = fmt.Sprintf("%s: observed %q, desired %q", d.Field, d.Observed, d.Desired)
	}
	return strings.Join(lines, "\n")
}

// clipDiff bounds a diff. The digest keeps two diffs with the same beginning apart.
func clipDiff(text string) string {
	if len(text) <= driftBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:driftBytes], "") + "… (digest " + hex.EncodeToString(sum[:4]) + ")"
}

// reportDrift sets the condition, and records one event for each distinct diff. The condition
// itself remembers what the last event said, so that a restart repeats nothing.
func reportDrift(mg resource.Managed, recorder event.Recorder, text string) {
	condition := xpv2.Condition{
		Type: TypeDrift, Status: corev1.ConditionFalse, Reason: ReasonInSync,
		LastTransitionTime: metav1.Now(), ObservedGeneration: mg.GetGeneration(),
	}
	if text != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, ReasonDiffers, clipDiff(text)
		if before := mg.GetCondition(TypeDrift); before.Reason != ReasonDiffers || before.Message != condition.Message {
			recorder.Event(mg, event.Event{Type: event.TypeWarning, Reason: reasonDiffers, Message: "External resource differs from the spec: " + condition.Message})
		}
	}
	mg.SetConditions(condition)
}

// driftAfterUpdate says that nobody has looked since the update.
func driftAfterUpdate(mg resource.Managed) {
	mg.SetConditions(xpv2.Condition{
		Type: TypeDrift, Status: corev1.ConditionUnknown, Reason: ReasonUpdated,
		LastTransitionTime: metav1.Now(), ObservedGeneration: mg.GetGeneration(),
		Message: "The external resource was updated. The next observation compares it.",
	})
}
