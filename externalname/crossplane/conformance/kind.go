package conformance

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/malformed"
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

// malformed returns the names that the provider has to refuse.
func (k Kind) malformed() []string {
	return slices.Concat(k.Malformed, malformed.Names(k.Shape, k.Unknown))
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
