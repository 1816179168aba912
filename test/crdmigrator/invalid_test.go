package crdmigrator_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// invalidity is one way in which an object may violate a newer schema.
type invalidity struct {
	reason  string
	schema  apiextensionsv1.JSONSchemaProps // of v2's spec
	spec    map[string]any                  // of w-0003
	refusal string                          // empty: accepted by ratcheting
	fix     map[string]any                  // the spec that is valid
}

var invalidities = map[string]invalidity{
	"field required": {
		reason:  "a missing field has no old value that could be unchanged",
		schema:  apiextensionsv1.JSONSchemaProps{Required: []string{"of"}},
		spec:    map[string]any{"color": "blue"},
		refusal: "spec.of: Required value",
		fix:     map[string]any{"color": "blue", "of": "w-0003"},
	},
	"value out of bounds": {
		reason: "ratcheting accepts an unchanged value",
		schema: apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"color": {Type: "string", MaxLength: new(int64(5))},
		}},
		spec: map[string]any{"color": "ultramarine"},
	},
	"rule": {
		reason: "ratcheting accepts an unchanged value",
		schema: apiextensionsv1.JSONSchemaProps{
			Properties:   map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "self.color != 'red'", Message: "red is taken"}},
		},
		spec: map[string]any{"color": "red"},
	},
	"rule of transition": {
		reason: "a rule that uses oldSelf is not ratcheted",
		schema: apiextensionsv1.JSONSchemaProps{
			Properties:   map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "oldSelf.color == '' || self.color != 'red'", Message: "red is taken"}},
		},
		spec:    map[string]any{"color": "red"},
		refusal: "red is taken",
		fix:     map[string]any{"color": "green"},
	},
	"set": {
		reason: "ratcheting accepts an unchanged value",
		schema: apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"tags": {
				Type: "array", XListType: new("set"),
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
			},
		}},
		spec: map[string]any{"tags": []any{"a", "a"}},
	},
}

// TestObjectInvalidUnderTheNewSchema: the server accepts an unchanged invalid value,
// with two exceptions. The report names a refused object with the server's message.
// All other objects are migrated, and the refused one once it is fixed.
func TestObjectInvalidUnderTheNewSchema(t *testing.T) {
	t.Parallel()
	for name, tc := range invalidities {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 20)
			w.replaceSpec("v1", "w-0003", tc.spec)
			tc.schema.Type, tc.schema.XPreserveUnknownFields = "object", new(true)
			v2 := version("v2", true, true)
			v2.Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": tc.schema}
			w.setVersions(version("v1", true, false), v2)
			w.awaitStoring("v2")
			m := w.quickMigrator(storageversion.Options{})

			report := w.mustMigrate(m)
			if tc.refusal != "" {
				w.mustFailOne(report, godwit.Counts{Migrated: 19, Failed: 1}, "w-0003", tc.refusal)
				w.mustBeStored("with an invalid object", map[string]int{"v1": 1, "v2": 19})
				w.replaceSpec("v2", "w-0003", tc.fix)
				report = w.mustMigrate(m)
				if want := (godwit.Counts{Skipped: 20}); report.Storage.Counts != want {
					t.Errorf("second run: %+v, want %+v, because the fix stored it at v2", report.Storage.Counts, want)
				}
			} else if want := (godwit.Counts{Migrated: 20}); report.Storage.Counts != want {
				t.Errorf("%s: %+v, want %+v", tc.reason, report.Storage, want)
			}
			w.mustBeMigrated(report, 20)
		})
	}
}

// replaceSpec writes the whole spec of an object.
func (w *widgets) replaceSpec(version, name string, spec map[string]any) {
	w.t.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.at(version).Patch(w.t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
