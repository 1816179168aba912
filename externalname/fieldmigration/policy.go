package fieldmigration

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Policy returns the MutatingAdmissionPolicy that applies the steps in the API server itself, and its binding. It needs
// no webhook, and Kubernetes 1.36 or later. It returns an error if a field name is not a CEL identifier; use [Webhook]
// for such steps.
func (s Steps) Policy(name string, r schema.GroupVersionResource) (*admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding, error) {
	object := place{[]string{"object"}}.below(pathOr(s.Path)...)
	if err := object.check(); err != nil {
		return nil, nil, err
	}
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}},
				},
			}}},
			MatchConditions:    []admissionregistrationv1.MatchCondition{{Name: "has-fields", Expression: object.exists(1)}},
			FailurePolicy:      &fail,
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		},
	}
	for _, step := range s.Steps {
		expression, err := step.cel(object)
		if err != nil {
			return nil, nil, err
		}
		policy.Spec.Mutations = append(policy.Spec.Mutations, admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
		})
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	return policy, binding, nil
}

// cel returns the expression for the list of patches of a step.
func (s Step) cel(object place) (string, error) {
	to := object.below(s.to...)
	if err := to.check(); err != nil {
		return "", err
	}
	value := literal(s.value)
	if s.from == nil {
		return s.add(object, to, value), nil
	}
	from := object.below(s.from...)
	if err := from.check(); err != nil {
		return "", err
	}
	patches := s.add(object, to, from.cel())
	if s.remove {
		patches = fmt.Sprintf(`(%s) + [JSONPatch{op: "remove", path: %q}]`, patches, from.pointer())
	}
	return fmt.Sprintf("%s ? %s : []", from.exists(len(object.names)), patches), nil
}

// add returns the expression that sets a field and creates missing parent objects. object exists.
func (s Step) add(object, to place, value string) string {
	next := object.below(to.names[len(object.names)])
	rest := to.names[len(next.names):]
	set := fmt.Sprintf(`[JSONPatch{op: "add", path: %q, value: %s}]`, next.pointer(), within(rest, value))
	switch {
	case len(rest) > 0:
		return fmt.Sprintf("!has(%s) ? %s : %s", next.cel(), set, s.add(next, to, value))
	case s.remove:
		return set
	}
	return fmt.Sprintf("!has(%s) ? %s : []", next.cel(), set)
}

// within wraps a value in objects.
func within(names []string, value string) string {
	for _, name := range slices.Backward(names) {
		value = fmt.Sprintf("{%q: %s}", name, value)
	}
	return value
}

// place is a field of the object that a policy sees.
type place struct{ names []string }

func (p place) below(names ...string) place { return place{slices.Concat(p.names, names)} }
func (p place) cel() string                 { return strings.Join(p.names, ".") }
func (p place) pointer() string             { return "/" + strings.Join(p.names[1:], "/") }

// exists tests each name after the first ones, which are known to exist.
func (p place) exists(known int) string {
	var tests []string
	for end := known + 1; end <= len(p.names); end++ {
		tests = append(tests, "has("+place{p.names[:end]}.cel()+")")
	}
	return strings.Join(tests, " && ")
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the words that the API server escapes in the names of fields.
var reserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
}

func (p place) check() error {
	for _, name := range p.names {
		if !identifier.MatchString(name) || strings.Contains(name, "__") || slices.Contains(reserved, name) {
			return fmt.Errorf("field %q of %s is not an identifier of CEL: use a webhook", name, p.cel())
		}
	}
	return nil
}

// literal writes a JSON value in CEL.
func literal(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return quote(value)
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return "double(" + strconv.Quote(strconv.FormatFloat(value, 'g', -1, 64)) + ")"
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = "dyn(" + literal(item) + ")"
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var entries []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			entries = append(entries, quote(key)+": dyn("+literal(value[key])+")")
		}
		return "{" + strings.Join(entries, ", ") + "}"
	}
	panic(fmt.Sprintf("fieldmigration: %T is not JSON", value)) // Default refuses it.
}

// quote returns a string literal. CEL and Go have the same escapes except those of single bytes, which JSON does not
// have.
func quote(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) }
