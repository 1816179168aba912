package fieldmigration

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/externalname"
)

// AnnotationKeyFields on a CRD lists the fields that are the key of an external resource, as PATH=Immutable
// or PATH=Mutable, separated by commas. It is [NoKeyFields] if the external system makes the key. `godwit
// lint provider` reads it.
const AnnotationKeyFields = "godwit.dev/external-name-fields"

// NoKeyFields is the value of [AnnotationKeyFields] for keys without a part in the spec.
const NoKeyFields = "None"

// KeyField is a field of the spec that is a segment of the external name.
type KeyField struct {
	// Segment is the name of a segment of the codec.
	Segment string
	// Field is its path below the parameters, such as group or scope.region.
	Field string
	// Optional fields may be left out, for example until a reference is resolved. Once set, they can't
	// be removed.
	Optional bool
}

// Constraint is a CEL validation rule for a CRD.
type Constraint struct {
	// Field is the path of the schema with the rule, below the parameters; empty means the parameters themselves.
	Field string
	Rule  apiextensionsv1.ValidationRule
}

// Marker returns the comment with which controller-gen generates the rule.
func (c Constraint) Marker() string {
	return fmt.Sprintf("// +kubebuilder:validation:XValidation:rule=%q,message=%q", c.Rule.Rule, c.Rule.Message)
}

// Constraints returns the rules for the fields of a key. They follow from the codec: the API server refuses the same
// texts as the codec, and a change of the identity. It returns an error for fields that do not match the shape.
//
// The rules against changes are on the parameters, because a rule on a field is not evaluated when the field is
// removed. For the same reason, spec and all fields on the path to the parameters must be required. The codec alone
// checks the rules that a provider has written in Go, and the exact length: an escape counts three bytes.
func Constraints(shape externalname.Shape, fields ...KeyField) ([]Constraint, error) {
	var all []Constraint
	var sizes []string
	for _, f := range fields {
		i := slices.IndexFunc(shape.Segments, func(s externalname.SegmentShape) bool { return s.Name == f.Segment })
		if i < 0 {
			return nil, fmt.Errorf("field %s: the codec %s has no segment %q", f.Field, shape, f.Segment)
		}
		at := place{[]string{"self"}}.below(strings.Split(f.Field, ".")...)
		if err := at.check(); err != nil {
			return nil, fmt.Errorf("field %s: a rule can't name it", f.Field)
		}
		segment := shape.Segments[i]
		if !segment.Mutable {
			all = append(all, immutable(f, at, segment))
		}
		all = append(all, format(f, segment))
		sizes = append(sizes, size(f, at))
	}
	if len(sizes) > 0 {
		all = append(all, Constraint{Rule: apiextensionsv1.ValidationRule{
			Rule:    fmt.Sprintf("%s + %d <= %d", strings.Join(sizes, " + "), len(shape.Segments)-1, shape.MaxBytes),
			Message: fmt.Sprintf("the external name %s can have %d bytes at most", shape, shape.MaxBytes),
		}})
	}
	return all, nil
}

// immutable returns the rule against changes of a field. It ignores letter case if the external system does.
func immutable(f KeyField, now place, segment externalname.SegmentShape) Constraint {
	before := place{slices.Concat([]string{"oldSelf"}, now.names[1:])}
	same := fmt.Sprintf("%s == %s", folded(segment, now.cel()), folded(segment, before.cel()))
	if f.Optional {
		same = fmt.Sprintf("!(%s) || %s && %s", before.exists(1), now.exists(1), same)
	}
	return Constraint{Rule: apiextensionsv1.ValidationRule{
		Rule:    same,
		Message: fmt.Sprintf("%s is part of the external name and can't change; create another object", f.Field),
	}}
}

func size(f KeyField, at place) string {
	if f.Optional {
		return fmt.Sprintf("(%s ? bytes(%s).size() : 0)", at.exists(1), at.cel())
	}
	return fmt.Sprintf("bytes(%s).size()", at.cel())
}

// folded returns an expression that folds letter case if the segment ignores it.
func folded(segment externalname.SegmentShape, text string) string {
	if segment.FoldsCase {
		return text + ".lowerAscii()"
	}
	return text
}

// format returns the rule for the text of a segment.
func format(f KeyField, segment externalname.SegmentShape) Constraint {
	var rule string
	switch {
	case segment.Hex32:
		rule = "self.matches('^[0-9a-fA-F]{32}$')"
	case segment.GUID:
		rule = "self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')"
	case segment.Values != nil:
		quoted := make([]string, len(segment.Values))
		for i, value := range segment.Values {
			quoted[i] = quote(value)
		}
		rule = fmt.Sprintf("%s in [%s]", folded(segment, "self"), strings.Join(quoted, ", "))
	default:
		rule = "self.trim() != '' && !(self in ['.', '..'])"
	}
	if segment.Optional {
		rule = "self == '' || " + rule
	}
	return Constraint{Field: f.Field, Rule: apiextensionsv1.ValidationRule{
		Rule: rule, Message: fmt.Sprintf("%s must be %s", f.Field, segment.Expected),
	}}
}

// KeyFields returns the value of [AnnotationKeyFields] for the fields at a path such as spec.forProvider.
func KeyFields(path string, shape externalname.Shape, fields ...KeyField) string {
	words := []string{}
	for _, f := range fields {
		word := strings.Join(append(pathOr(path), f.Field), ".") + "=Immutable"
		for _, segment := range shape.Segments {
			if segment.Name == f.Segment && segment.Mutable {
				word = strings.Join(append(pathOr(path), f.Field), ".") + "=Mutable"
			}
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return NoKeyFields
	}
	return strings.Join(words, ",")
}
