package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/examples/provider-ldap/crds"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

// The page is that of the codecs as they are.
func TestPageIsCurrent(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../../docs/reference/external-name-kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate (-want +got):\n%s", diff)
	}
}

// The CRDs of the example declare the key fields of the codecs, so that godwit lint provider checks the right ones.
func TestCRDsDeclareTheKeyFieldsOfTheCodecs(t *testing.T) {
	fields := map[string][]fieldmigration.KeyField{
		"Person": nil, // The directory makes the key.
		"Group":  nil,
		"Membership": {
			{Segment: "group", Field: "group", Optional: true},
			{Segment: "member", Field: "member"},
		},
	}
	manifests := map[string]string{"Person": "people", "Group": "groups", "Membership": "memberships"}
	for _, d := range provider.Descriptions() {
		t.Run(d.Kind.Kind, func(t *testing.T) {
			text, err := crds.Files.ReadFile("ldap.example.org_" + manifests[d.Kind.Kind] + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(text, &crd); err != nil {
				t.Fatal(err)
			}
			want := fieldmigration.KeyFields("", d.Shape, fields[d.Kind.Kind]...)
			if got := crd.Annotations[fieldmigration.AnnotationKeyFields]; crd.Spec.Names.Kind != d.Kind.Kind || got != want {
				t.Errorf("CRD of %s: %q, want %q", crd.Spec.Names.Kind, got, want)
			}
		})
	}
}
