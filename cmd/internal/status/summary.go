package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/quote"
)

// Types of the conditions that every Summary sets.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// State says which of the three conditions is True.
type State string

const (
	// StateSuspended means that no condition is True, because the user has suspended the object. kstatus reports
	// InProgress.
	StateSuspended State = ""
	// StateReady means that nothing is left to do.
	StateReady State = Ready
	// StateReconciling means that the work continues without user action.
	StateReconciling State = Reconciling
	// StateStalled means that user action is required.
	StateStalled State = Stalled
)

// Summary is the result of a pass.
type Summary struct {
	State State
	// Reason is a CamelCase constant.
	Reason string
	// Message says what happened and what to do. It has no times and counts, because each new message is a write.
	Message string
	// Warning makes the event a warning although the work continues. The event of a stalled Summary is always a
	// warning.
	Warning bool
}

// Occurrence is how a reason shows in the status of an object.
type Occurrence struct {
	// Condition is the condition that is True; empty for none.
	Condition string
	// EventType is Normal or Warning; empty where there is no event.
	EventType string
}

// Object is an object with conditions in its status.
type Object interface {
	client.Object
	// Conditions points to the conditions.
	Conditions() *[]metav1.Condition
	// ObservedGeneration points to the generation that the status is about.
	ObservedGeneration() *int64
}

// Apply sets the conditions Ready, Reconciling and Stalled, and the observed generation.
func (s Summary) Apply(o Object) {
	for _, condition := range []State{StateReady, StateReconciling, StateStalled} {
		SetCondition(o, string(condition), s.State == condition, s.Reason, s.Message)
	}
	*o.ObservedGeneration() = o.GetGeneration()
}

// SameReason reports whether the conditions have the reason of the Summary already.
func (s Summary) SameReason(conditions []metav1.Condition) bool {
	known := meta.FindStatusCondition(conditions, Ready)
	return known != nil && known.Reason == s.Reason
}

// Same reports whether the conditions have the reason and the message of the Summary already.
func (s Summary) Same(conditions []metav1.Condition) bool {
	known := meta.FindStatusCondition(conditions, Ready)
	return known != nil && known.Reason == s.Reason && known.Message == clip(s.Message)
}

// SetCondition sets one condition. It clips the message to what the API server accepts.
func SetCondition(o Object, condition string, is bool, reason, message string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(o.Conditions(), metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: clip(message), ObservedGeneration: o.GetGeneration(),
	})
}

// maxMessage is the limit in the schema of metav1.Condition, in characters. The API server refuses the whole status of an
// object with a longer message, and a message may quote a webhook.
const maxMessage = 32768

func clip(message string) string { return quote.Clip(strings.ToValidUTF8(message, ""), maxMessage) }
