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
