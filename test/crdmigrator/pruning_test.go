package crdmigrator_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// strictV2 has only a color, a size with a default, and notes without a schema.
func strictV2() apiextensionsv1.CustomResourceDefinitionVersion {
	v2 := version("v2", true, true)
	v2.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"color": {Type: "string"},
					"size":  {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
					"notes": {Type: "object", XPreserveUnknownFields: new(true)},
				},
			},
			"status": {
				Type:       "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}},
			},
		},
	}
	return v2
}

// parts returns the bytes of an object in etcd, without its metadata. A client would
// decode numbers.
func (w *widgets) parts(name string) map[string]string {
	w.t.Helper()
	pair, err := w.plane.Etcd().Get(w.t.Context(), w.key(name))
	if err != nil || len(pair.Kvs) != 1 {
		w.t.Fatalf("%s in etcd: %v, %v", name, pair, err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(pair.Kvs[0].Value, &raw); err != nil {
		w.t.Fatal(err)
	}
	delete(raw, "metadata")
	parts := map[string]string{}
	for key, value := range raw {
		parts[key] = string(value)
	}
	return parts
}

// TestSchemasPruneAndDefault: with every write, fields that v2 preserves keep their
// bytes, and unknown fields are pruned, because the server decodes the object. The
// server stores a default where it decodes the object from a request. After a write of
// the status, or an empty apply, it adds the default on read.
func TestSchemasPruneAndDefault(t *testing.T) {
	t.Parallel()
	const notes = `{"big":9007199254740993,"deep":{"apiVersion":"v7","kind":"Nest","list":[1,"two",{"three":3}]},"empty":{},"half":0.5,"none":null}`
	stored := map[decision.Write]string{
		decision.WritePatch:  `,"size":3`,
		decision.WriteUpdate: `,"size":3`,
	}
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.create(w.config, "v1", "rich")
			w.alterStored("rich", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"color": "blue", "of": "v1 alone", "notes": json.RawMessage(notes)}
				o.Object["status"] = map[string]any{"phase": "Up", "of": "v1 alone"}
				o.Object["extra"] = map[string]any{"of": "v1 alone"}
			})
			w.setVersions(version("v1", true, false), strictV2())
			w.awaitStoring("v2")

			_, config := w.user(w.permissionsOf(write)...)
			m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: write, AcceptLosses: []string{"extra", "spec.of", "status.of"}}})
			if report := w.mustMigrate(m); report.Storage.Counts != (godwit.Counts{Migrated: 1}) || !report.Trimmed {
				t.Errorf("run: %+v, want one migrated, and trimmed", report)
			}
			want := map[string]string{
				"apiVersion": `"` + w.group + `/v2"`,
				"kind":       `"Widget"`,
				"spec":       `{"color":"blue","notes":` + notes + stored[write] + `}`,
				"status":     `{"phase":"Up"}`,
			}
			if diff := cmp.Diff(want, w.parts("rich")); diff != "" {
				t.Errorf("etcd holds (-want +got):\n%s", diff)
			}
			if spec, ok := w.specs("v2")["rich"].(map[string]any); !ok || spec["size"] != int64(3) {
				t.Errorf("readers get %v, want the default size", spec)
			}
		})
	}
}
