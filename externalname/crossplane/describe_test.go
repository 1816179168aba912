package crossplane

import (
	"context"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
)

type pair struct{ Group, Member string }

// The tables are generated from the codecs, exceptions included.
func TestWriteMarkdown(t *testing.T) {
	people := Resource[*fake.Managed, string, string]{
		Kind: schema.GroupVersionKind{Group: "names.example.org", Version: "v1", Kind: "Person"},
		Names: externalname.Scheme[string]{
			Codec:  externalname.GUID(),
			Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
		},
		Connect: func(context.Context, *fake.Managed) (External[*fake.Managed, string, string], error) {
			return External[*fake.Managed, string, string]{}, nil
		},
	}
	members := Resource[*fake.Managed, pair, string]{
		Kind: schema.GroupVersionKind{Group: "names.example.org", Version: "v1", Kind: "Membership"},
		Names: externalname.Scheme[pair]{Codec: externalname.Compound(
			externalname.Field("group", func(k *pair) *string { return &k.Group }, externalname.IsGUID()),
			externalname.Field("member", func(k *pair) *string { return &k.Member }, externalname.Optional(), externalname.Mutable(),
				externalname.Enum("owner|admin", "reader")),
		)},
		Exceptions: []Exception{{Rule: RuleNameFromCreate, Reason: "The member is known later."}},
	}
	var b strings.Builder
	if err := WriteMarkdown(&b, people.Describe(), members.Describe()); err != nil {
		t.Fatal(err)
	}
	want := `| kind | external name | former names that are read | exceptions |
|---|---|---|---|
| Person.names.example.org | ` + "`<guid>`" + ` | ObjectName | none |
| Membership.names.example.org | ` + "`<group>/[<member>]`" + ` | none | NameFromCreate: The member is known later. |

The external name of Person.names.example.org is ` + "`<guid>`" + `, at most 512 bytes:

| segment | text | may be empty | may change | letter case |
|---|---|---|---|---|
| guid | a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11 | no | no | has no meaning: names have lower case |

The external name of Membership.names.example.org is ` + "`<group>/[<member>]`" + `, at most 512 bytes:

| segment | text | may be empty | may change | letter case |
|---|---|---|---|---|
| group | a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11 | no | no | has no meaning: names have lower case |
| member | one of owner\|admin, reader | yes | yes | has a meaning |
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each exception that a user meets is in the table, also if a field of the kind implies it. A declared reason wins.
func TestDescribeListsImpliedExceptions(t *testing.T) {
	kind := Resource[*fake.Managed, string, string]{Names: externalname.Scheme[string]{Codec: externalname.GUID()}}
	if got := kind.Describe().Exceptions; len(got) != 0 {
		t.Errorf("a kind that follows all rules has exceptions: %v", got)
	}
	kind.FindUnnamed, kind.ImportMustExist = true, true
	kind.Exceptions = []Exception{{Rule: RuleMissingIsCreated, Reason: "Accounts are ordered by mail."}}
	var b strings.Builder
	if err := WriteMarkdown(&b, kind.Describe()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"UnnamedAdoptsNothing: An object without an external name gets the name of the only external resource that fits its spec",
		"MissingIsCreated: Accounts are ordered by mail.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "nothing is created") {
		t.Errorf("the declared reason was not used:\n%s", b.String())
	}
}
