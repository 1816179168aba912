package crossplane

import (
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of conditions and policies are in crossplane-runtime/v2/apis/common up to v2.2, and in crossplane/apis/v2 since
// v2.3. This package imports neither, so that it builds with both: it takes such a value from an object, and fills it.

// condition is a condition to set.
type condition struct {
	kind       string
	status     corev1.ConditionStatus
	reason     string
	message    string
	generation int64
}

// Types and reasons of crossplane-runtime.
const (
	typeReady            = "Ready"
	typeSynced           = "Synced"
	reasonAvailable      = "Available"
	reasonUnavailable    = "Unavailable"
	reasonCreating       = "Creating"
	reasonDeleting       = "Deleting"
	reasonReconcileError = "ReconcileError"
)

func setCondition(mg resource.Managed, c condition) {
	written := mg.GetCondition(typeReady)
	assign(&written.Type, c.kind)
	assign(&written.Reason, c.reason)
	written.Status, written.Message, written.ObservedGeneration = c.status, c.message, c.generation
	written.LastTransitionTime = metav1.Now()
	mg.SetConditions(written)
}

// assign assigns a text to a variable of any type of strings.
func assign[T ~string](to *T, text string) { *to = T(text) }

// condition returns the condition Ready for the state of an external resource.
func (l Lifecycle) condition() condition {
	c := condition{kind: typeReady, status: corev1.ConditionFalse, message: clip(l.Message)}
	switch l.State {
	case Creating:
		c.reason = reasonCreating
	case Deleting:
		c.reason = reasonDeleting
	case Failed:
		c.reason = reasonUnavailable
	case Ready:
		c.status, c.reason = corev1.ConditionTrue, reasonAvailable
	default:
		c.reason, c.message = reasonUnavailable, fmt.Sprintf("the provider reports the unknown state %q", l.State)
	}
	return c
}

// Management policies of crossplane-runtime.
const (
	policyAll     = "*"
	policyObserve = "Observe"
	policyCreate  = "Create"
)

// mustExist reports whether policies without Create allow more than Observe. For Observe alone, crossplane-runtime has
// its own error.
func mustExist[P ~string](policies []P) bool {
	creates := len(policies) == 0 || slices.Contains(policies, policyAll) || slices.Contains(policies, policyCreate)
	return !creates && !slices.Equal(policies, []P{policyObserve})
}
