package lineage

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/reference"
)

// NewReplacement completes what a family composed: it adds the namespace and the owners of the
// source, so that both are deleted with the same owners, and the annotations that name the
// source. The adopter, if there is one, becomes the controller.
func NewReplacement(composed, from *appsv1.ControllerRevision, adopter *reference.Referrer) *appsv1.ControllerRevision {
	r := composed.DeepCopy()
	r.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}
	r.Namespace, r.Revision = from.Namespace, from.Revision
	r.OwnerReferences = slices.Clone(from.OwnerReferences)
	if adopter != nil {
		r.OwnerReferences = append(r.OwnerReferences, *adopter.ControllerRef())
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[FromAnnotation], r.Annotations[FromUIDAnnotation] = from.Name, string(from.UID)
	return r
}

// Replaces reports whether an existing revision may be the one to create: it has the same
// controller, and its labels or is known to come from the source. It does not read data.
func Replaces(existing, want *appsv1.ControllerRevision) bool {
	a, b := metav1.GetControllerOfNoCopy(existing), metav1.GetControllerOfNoCopy(want)
	if a == nil || b == nil || a.UID != b.UID || existing.DeletionTimestamp != nil {
		return false
	}
	_, source := SourceOf(want)
	_, ours := SourcesOf(existing)[source]
	return ours || HasLabels(existing, want.Labels)
}

// HasLabels reports whether a revision has all of these labels.
func HasLabels(r *appsv1.ControllerRevision, want map[string]string) bool {
	for k, v := range want {
		if r.Labels[k] != v {
			return false
		}
	}
	return true
}

// Recreated is a deleted revision as it is created again, for an object that refers to it.
func Recreated(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	again := r.DeepCopy()
	again.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}
	again.UID, again.ResourceVersion, again.CreationTimestamp, again.ManagedFields = "", "", metav1.Time{}, nil
	delete(again.Annotations, UnreferencedAnnotation)
	return again
}
