package fleet

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestUpjetCRD(t *testing.T) {
	crd := func(storage bool, fields map[string]string) *apiextensionsv1.CustomResourceDefinition {
		spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for field, description := range fields {
			spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Description: description}
		}
		schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
		}}
		c := &apiextensionsv1.CustomResourceDefinition{}
		c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta0"}, {Name: "v1beta1", Storage: storage, Schema: schema}}
		return c
	}
	const ours = "The same fields are also added to the terraform ignore_changes hook, to avoid updating them after creation."
	cases := map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want bool
	}{
		"Upjet's template":                           {crd(true, map[string]string{"forProvider": "", "initProvider": ours}), true},
		"Upjet's template without descriptions":      {crd(true, map[string]string{"forProvider": "", "initProvider": ""}), true},
		"a provider on crossplane-runtime":           {crd(true, map[string]string{"forProvider": ""}), false},
		"a field of the same name by another author": {crd(true, map[string]string{"forProvider": "", "initProvider": "How the disk is formatted."}), false},
		"only a version that is not stored":          {crd(false, map[string]string{"initProvider": ours}), false},
	}
	for name, tc := range cases {
		if got := UpjetCRD(tc.crd); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestUpjetObjects(t *testing.T) {
	plain := map[string]any{"forProvider": map[string]any{}}
	generated := map[string]any{"forProvider": map[string]any{}, "initProvider": map[string]any{}}
	conditions := func(kind string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": "Success"}}}
	}
	cases := map[string]struct {
		kind         Kind
		spec, status map[string]any
		annotation   string
		want         bool
	}{
		"a provider on crossplane-runtime":           {spec: plain, status: conditions("Synced"), annotation: "crossplane.io/external-name"},
		"without the Terraform CLI, synchronous":     {spec: generated, want: true},
		"before a provider has written it":           {kind: Kind{Upjet: true}, spec: plain, want: true},
		"without the Terraform CLI, asynchronous":    {spec: plain, status: conditions("LastAsyncOperation"), want: true},
		"an operation that runs":                     {spec: plain, status: conditions("AsyncOperation"), want: true},
		"with the Terraform CLI":                     {spec: plain, annotation: "upjet.crossplane.io/provider-meta", want: true},
		"with fields that the version does not have": {spec: plain, annotation: "internal.upjet.crossplane.io/field-conversions", want: true},
		"generated, and follows the contract":        {kind: Kind{Upjet: true}, spec: generated, annotation: "godwit.dev/bound-external-name"},
	}
	for name, tc := range cases {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
		if tc.status != nil {
			o.Object["status"] = tc.status
		}
		if tc.annotation != "" {
			o.SetAnnotations(map[string]string{tc.annotation: "x"})
		}
		if got := factOf(tc.kind, o, Proposal{}, Identity{}, nil).Upjet; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
