package conformance

import (
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname"
)

// Kind describes a kind of managed resources for the checks.
type Kind struct {
	// Manifest returns a managed resource as a user writes it, without an external name and
	// with full management. No external resource fits it yet: id, which is a DNS label, is
	// part of what identifies the external resource. The namespace is that of the check; the
	// object itself gets it if its kind has one.
	Manifest func(namespace, id string) *unstructured.Unstructured
	// Shape describes the external names, as codecs return it. The checks derive malformed names from it.
	Shape externalname.Shape
	// Malformed are further names that the provider has to refuse.
	Malformed []string
	// Unknown is a valid external name that identifies nothing.
	Unknown string
	// Change is a merge patch that changes the external resource and not its name.
	Change string
	// Rename is a merge patch that changes a part of the key.
	Rename string
	// HardKeys are merge patches that put text into a segment of the key which a name has
	// to escape, such as a slash or outer spaces.
	HardKeys []string
	// LookupName returns an external name with which the provider looks the object up by its
	// spec, such as the one that crossplane-runtime writes by default.
	LookupName func(mg *unstructured.Unstructured) string
	// AllowsDuplicates means that the external system creates a second resource that is
	// equal to one that exists.
	AllowsDuplicates bool
	// NameOf returns what identifies the external resource of a kind that does not use external names, for the
	// functions of [System]. IgnoresNames says why the kind does not use them.
	NameOf       func(mg *unstructured.Unstructured) string
	IgnoresNames string
	// DriftCondition is the type of the condition that reports differences. Empty means
	// Drift.
	DriftCondition string
	// Exempt are the checks that do not apply, with the reason. The report prints it.
	Exempt map[CheckName]string
}

// nameOf returns the name of an object's resource for the functions of System.
func (k Kind) nameOf(mg *unstructured.Unstructured) string {
	if k.NameOf != nil {
		return k.NameOf(mg)
	}
	return meta.GetExternalName(mg)
}

// malformed returns the names that the provider has to refuse. Derived names vary Unknown in one segment.
func (k Kind) malformed() []string {
	list := append([]string{}, k.Malformed...)
	parts := strings.Split(k.Unknown, "/")
	if k.Unknown == "" || len(parts) != len(k.Shape.Segments) {
		return list
	}
	list = append(list, k.Unknown+"/surplus")
	for i, segment := range k.Shape.Segments {
		for _, text := range wrongTexts(segment, parts[i]) {
			list = append(list, replaced(parts, i, text))
		}
		if !segment.Optional && len(parts) > 1 {
			list = append(list, replaced(parts, i, ""), replaced(parts, i, "  "))
		}
	}
	return append(list, replaced(parts, len(parts)-1, strings.Repeat("a", 4*k.Shape.MaxBytes)))
}

// wrongTexts are variants of a valid text that a careless parser accepts.
func wrongTexts(segment externalname.SegmentShape, valid string) []string {
	wrong := []string{"..", valid + "\x1b[2J"}
	if segment.GUID {
		other := strings.ReplaceAll(valid, "-", "")
		if other == valid {
			other = strings.Join([]string{valid[:8], valid[8:12], valid[12:16], valid[16:20], valid[20:]}, "-")
		}
		wrong = append(wrong, "not-a-guid", "urn:uuid:"+valid, "{"+valid+"}", other)
	}
	if len(segment.Values) > 0 {
		wrong = append(wrong, strings.Join(segment.Values, "-")+"-none")
	}
	return wrong
}

func replaced(parts []string, i int, text string) string {
	list := append([]string{}, parts...)
	list[i] = text
	return strings.Join(list, "/")
}

func (k Kind) driftCondition() string {
	if k.DriftCondition == "" {
		return "Drift"
	}
	return k.DriftCondition
}

// escapes reports whether a segment of the key can have text that a name has to escape. It returns true if the shape is
// not known.
func (k Kind) escapes() bool {
	for _, segment := range k.Shape.Segments {
		if !segment.GUID && len(segment.Values) == 0 {
			return true
		}
	}
	return len(k.Shape.Segments) == 0
}
