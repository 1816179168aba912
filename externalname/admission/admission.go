// Package admission has the API server refuse malformed external names, before they reach an object. Without it, a
// provider refuses a malformed name with a condition, after the object was accepted.
//
// [Policy] makes a ValidatingAdmissionPolicy from the names of a kind. It needs no webhook, and Kubernetes 1.30 or later.
// The author of a provider writes it with [Write] to a file, and ships it with the CRDs.
//
// The policy refuses only what the provider would refuse. It does not know the checks that are Go functions, so the
// provider still checks each name.
package admission

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/godwit-dev/godwit/externalname"
)

// annotation of an object in CEL; empty if the object has none.
const annotation = `.metadata.?annotations[?"crossplane.io/external-name"].orValue("")`

// pathElement matches a name with a segment that is . or .., which no codec reads.
const pathElement = `(?:^|/)[\s\v\x{85}\p{Z}]*(?:\.|%2[eE]){1,2}[\s\v\x{85}\p{Z}]*(?:/|$)`

// Policy returns the ValidatingAdmissionPolicy that refuses malformed names of a kind, and its binding. It refuses an
// object that is created, and an update that changes the external name: an object that has a malformed name can still be
// corrected and deleted. It returns an error if a codec of the names is one of the author's own.
func Policy[K any](name string, r schema.GroupVersionResource, names externalname.Scheme[K]) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	pattern, err := names.Pattern()
	if err != nil {
		return nil, nil, fmt.Errorf("make a policy for the names of %s: %w", r.GroupResource(), err)
	}
	fail := admissionregistrationv1.Fail
	invalid := metav1.StatusReasonInvalid
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name:       "name-changes",
				Expression: `object` + annotation + ` != (oldObject == null ? "" : oldObject` + annotation + `)`,
			}},
			Variables: []admissionregistrationv1.Variable{
				{Name: "annotation", Expression: `object` + annotation},
				{Name: "name", Expression: `variables.annotation.trim()`},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: expression(pattern),
				Message:    "metadata.annotations[crossplane.io/external-name]: malformed external name, expected " + strings.Join(strings.Fields(pattern.Expected), " "),
				Reason:     &invalid,
			}},
			FailurePolicy: &fail,
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return policy, binding, nil
}

// expression compares the length first: the cost of a match grows with the text, and an annotation may have 256 KiB.
func expression(p externalname.Pattern) string {
	e := fmt.Sprintf("size(variables.name) <= %d && variables.name.matches(%s) && !variables.name.matches(%s)",
		p.MaxBytes, strconv.QuoteToASCII(p.Regexp), strconv.QuoteToASCII(pathElement))
	if p.ObjectName {
		e = "variables.annotation == object.metadata.name || " + e
	}
	return `variables.annotation == "" || ` + e
}

// Write writes objects as YAML documents, without their status.
func Write(w io.Writer, objects ...runtime.Object) error {
	yaml := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{Yaml: true})
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
		}
		delete(fields, "status")
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
		if err := yaml.Encode(&unstructured.Unstructured{Object: fields}, w); err != nil {
			return fmt.Errorf("write %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	return nil
}
