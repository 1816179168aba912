// Package kinds has the external names of the kinds that only the tests of this module manage, beside the kinds of
// examples/provider-ldap. The reference of external names shows them.
package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/externalname/database"
)

// Version is the API of the kinds that are declared here.
var Version = schema.GroupVersion{Group: "names.example.org", Version: "v1"}

// HybridKey is the key of a person in a hybrid kind. The mail is known from the status only.
type HybridKey struct{ ID, Mail string }

// HybridNames are ID/MAIL.
var HybridNames = externalname.Scheme[HybridKey]{Codec: externalname.Compound(
	externalname.Field("id", func(k *HybridKey) *string { return &k.ID }, externalname.IsGUID()),
	externalname.Field("mail", func(k *HybridKey) *string { return &k.Mail }, externalname.Optional(), externalname.Mutable()),
)}

// HybridExceptions are the rules that a hybrid kind does not follow.
var HybridExceptions = []crossplane.Exception{
	{Rule: crossplane.RuleNameFromCreate, Reason: "The mail is known after the first observation only."},
}

// Descriptions returns the descriptions of the kinds for the reference.
func Descriptions() []crossplane.Description {
	return []crossplane.Description{
		describe(database.Kind, database.Names.Codec.Describe()),
		describe(Version.WithKind("Person"), HybridNames.Codec.Describe(), HybridExceptions...),
	}
}

func describe(kind schema.GroupVersionKind, shape externalname.Shape, exceptions ...crossplane.Exception) crossplane.Description {
	return crossplane.Description{Kind: kind, Pattern: shape.String(), Shape: shape, Exceptions: exceptions}
}
