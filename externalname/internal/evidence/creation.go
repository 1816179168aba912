package evidence

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations of crossplane-runtime, which module 1 does not require.
const (
	AnnotationName      = "crossplane.io/external-name"
	AnnotationPaused    = "crossplane.io/paused"
	AnnotationPending   = "crossplane.io/external-create-pending"
	AnnotationSucceeded = "crossplane.io/external-create-succeeded"
	AnnotationFailed    = "crossplane.io/external-create-failed"
)

// Annotations of package crossplane.
const (
	AnnotationBound     = "godwit.dev/bound-external-name"
	AnnotationOperation = "godwit.dev/pending-operation"
	AnnotationToken     = "godwit.dev/creation-token" //nolint:gosec // It is the name of an annotation.
)

// Creation is what the annotations of a managed resource say about the creation of its external resource.
type Creation struct {
	// Pending, Succeeded and Failed are zero without the annotation.
	Pending, Succeeded, Failed time.Time
	// Incomplete means that a creation has begun, and that its outcome is not recorded.
	Incomplete bool
	// Running means that an asynchronous creation has not ended: the external resource has no name yet.
	Running bool
	// Bound is the name under which package crossplane has last seen the external resource.
	Bound string
}

// CreationOf reads a managed resource.
func CreationOf(o *unstructured.Unstructured) Creation {
	a := o.GetAnnotations()
	c := Creation{
		Pending: parseTime(a[AnnotationPending]), Succeeded: parseTime(a[AnnotationSucceeded]), Failed: parseTime(a[AnnotationFailed]),
		Running: a[AnnotationOperation] != "" || upjetCreates(o), Bound: a[AnnotationBound],
	}
	if !c.Pending.IsZero() {
		c.Incomplete = a[AnnotationToken] != "" || c.Pending.After(c.Succeeded) && c.Pending.After(c.Failed)
	}
	return c
}

// NameLost reports whether an external resource was created or seen, and the managed resource has no external name. The
// next creation would make another external resource.
func (c Creation) NameLost(externalName string) bool {
	return externalName == "" && !c.Running && (c.Bound != "" || !c.Succeeded.IsZero())
}

// LastFailed reports whether the last creation has failed.
func (c Creation) LastFailed() bool {
	return !c.Failed.IsZero() && !c.Failed.Before(c.Pending) && c.Failed.After(c.Succeeded)
}

// upjetCreates reports whether an asynchronous creation by a provider of Upjet runs, or has failed. crossplane-runtime
// records that it has succeeded when it has begun.
func upjetCreates(o *unstructured.Unstructured) bool {
	return conditionReason(o, "AsyncOperation") == "Ongoing" || conditionReason(o, "LastAsyncOperation") == "AsyncCreateFailure"
}

// conditionReason returns the reason of a condition, or empty.
func conditionReason(o *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range list {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			reason, _ := c["reason"].(string)
			return reason
		}
	}
	return ""
}

func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
