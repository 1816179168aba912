package evidence

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationApplied has the manifest that a client-side apply has sent.
const annotationApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Writer is an entry of metadata.managedFields about the object itself, and not its status.
type Writer struct {
	Manager string
	// Apply means a server-side apply.
	Apply bool
	// At is when the manager has last changed a field that it owns, or the set of them.
	At time.Time
	// Name, Succeeded, Paused and Applied mean that the manager owns the annotation of the external name, of a creation that has
	// succeeded, of the pause, and of a client-side apply.
	Name, Succeeded, Paused, Applied bool
	// Spec means that the manager owns fields of the spec, and Policies that spec.managementPolicies is one of them.
	Spec, Policies bool
}

// WritersOf returns the writers of an object. An update that changes a value takes the field from all others.
func WritersOf(o *unstructured.Unstructured) []Writer {
	var all []Writer
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		owns := func(annotation string) bool {
			_, has := fields.Metadata.Annotations["f:"+annotation]
			return has
		}
		w := Writer{
			Manager: entry.Manager, Apply: entry.Operation == metav1.ManagedFieldsOperationApply, Spec: len(fields.Spec) > 0,
			Name: owns(AnnotationName), Succeeded: owns(AnnotationSucceeded), Paused: owns(AnnotationPaused), Applied: owns(annotationApplied),
		}
		_, w.Policies = fields.Spec["f:managementPolicies"]
		if entry.Time != nil {
			w.At = entry.Time.Time
		}
		all = append(all, w)
	}
	return all
}

// AppliedName returns the external name in the manifest of a client-side apply, or empty.
func AppliedName(o *unstructured.Unstructured) string {
	var manifest struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(o.GetAnnotations()[annotationApplied]), &manifest); err != nil {
		return ""
	}
	return manifest.Metadata.Annotations[AnnotationName]
}

// turns is how close to each other two writers write who write in turns: Crossplane reconciles a composite every minute, and a
// GitOps tool compares every three.
const turns = 10 * time.Minute

// InTurns reports whether two writers write in turns: both have written the object long after its creation, one soon after the other. A
// manager that applies what is there already leaves no trace in metadata.managedFields.
func InTurns(created time.Time, a, b Writer) bool {
	return a.At.Sub(b.At).Abs() <= turns && a.At.Sub(created) > turns && b.At.Sub(created) > turns
}
