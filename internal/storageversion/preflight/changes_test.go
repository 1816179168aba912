package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

func TestChangedPaths(t *testing.T) {
	type object = map[string]any
	meta := func(m object) object { return object{"metadata": m} }
	cases := map[string]struct {
		reason        string
		before, after object
		want          []string
	}{
		"what every write changes": {
			reason: "no webhook or conversion causes these",
			before: meta(object{"resourceVersion": "1", "generation": int64(1), "managedFields": []any{}}),
			after:  meta(object{"resourceVersion": "2", "generation": int64(2)}),
		},
		"a value": {
			reason: "the innermost path that differs",
			before: object{"spec": object{"color": "blue", "size": int64(1)}}, after: object{"spec": object{"color": "red", "size": int64(1)}},
			want: []string{"spec.color"},
		},
		"added and removed": {
			reason: "a whole subtree is one path",
			before: object{"spec": object{"a": object{"b": true}}}, after: object{"spec": object{"c": object{"d": true}}},
			want: []string{"spec.a", "spec.c"},
		},
		"a null is not nothing": {
			reason: "the API server keeps nulls that a schema allows",
			before: object{"spec": object{"a": nil}}, after: object{"spec": object{}},
			want: []string{"spec.a"},
		},
		"keys that are no words": {
			reason: "they stand in brackets",
			before: meta(object{"labels": object{"example.com/x": "1"}}), after: meta(object{"labels": object{"example.com/x": "2"}}),
			want: []string{"metadata.labels[example.com/x]"},
		},
		"in a list": {
			reason: "as any item, so that a user who accepts the change accepts it for each",
			before: object{"list": []any{object{"a": "1"}, "b"}}, after: object{"list": []any{object{"a": "2"}, "b"}},
			want: []string{"list[].a"},
		},
		"a list of another length": {
			reason: "what moved can't be told",
			before: object{"list": []any{"a", "b"}}, after: object{"list": []any{"b"}},
			want: []string{"list"},
		},
		"another type": {
			reason: "at the path itself",
			before: object{"spec": object{}}, after: object{"spec": "text"},
			want: []string{"spec"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changedPaths(tc.before, tc.after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFillDefaults(t *testing.T) {
	value := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	sized := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Default: value("3")}}}
	crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Default: value("{}"), Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"size": {Default: value("3")},
					"null": {Default: value("1"), Nullable: true},
				}},
				"list": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &sized}},
				"map":  {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &sized}},
			},
		}}
	})
	cases := map[string]struct {
		reason       string
		object, want map[string]any
	}{
		"nothing there": {
			reason: "a default may need the defaults of what is in it",
			object: map[string]any{},
			want:   map[string]any{"spec": map[string]any{"size": int64(3), "null": int64(1)}},
		},
		"there already": {
			reason: "a value stays, and so does a null that is allowed; any other is taken for nothing",
			object: map[string]any{"spec": map[string]any{"size": nil, "null": nil}},
			want:   map[string]any{"spec": map[string]any{"size": int64(3), "null": nil}},
		},
		"in lists and maps": {
			reason: "only what is there gets defaults",
			object: map[string]any{"spec": map[string]any{"size": int64(1), "null": "x"}, "list": []any{map[string]any{}}, "map": map[string]any{"k": map[string]any{}}},
			want: map[string]any{
				"spec": map[string]any{"size": int64(1), "null": "x"},
				"list": []any{map[string]any{"size": int64(3)}}, "map": map[string]any{"k": map[string]any{"size": int64(3)}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fillDefaults(crd, tc.object)
			if diff := cmp.Diff(tc.want, tc.object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
