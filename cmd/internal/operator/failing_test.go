package operator

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestFailingObjectStopsNoOther: a rule of the new version refuses one object among
// two hundred. It is named, the rest is migrated, and nothing is trimmed until
// the user corrects it, after which the migration ends by itself.
func TestFailingObjectStopsNoOther(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 200
	geese := c.define("geese", n, optedIn)
	paint := func(color string) {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: "Geese"})
		o.SetName("o-0042")
		if err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"color":"`+color+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	paint("red")
	// A rule that knows the old object, since the API server forgives what else an
	// unchanged object breaks.
	strict := version("v2", true, true)
	strict.Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {
		Type:         "object",
		Properties:   map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "oldSelf.color == '' || self.color != 'red'", Message: "red is taken"}},
	}}
	_, err := controlplane.UpdateCRD(t.Context(), c.plane.Config(), geese, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), strict}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	m := c.awaitReason(geese, decision.ReasonObjectsFailed.Name)
	if done := m.Status.Storage; done.Failed != 1 || done.Migrated != n-1 {
		t.Errorf("%+v, want one of %d to fail", done, n)
	}
	if len(m.Status.Failures) != 1 || m.Status.Failures[0].Name != "o-0042" {
		t.Errorf("failures %+v, want o-0042", m.Status.Failures)
	}
	c.mustNotBeDone(geese)
	c.mustBeStored(geese, map[string]int{"v2": n - 1, "v1": 1})

	paint("green") // through v1, which has no such rule
	m = c.awaitReason(geese, decision.ReasonSucceeded.Name)
	if len(m.Status.Failures) != 0 {
		t.Errorf("in the end there are failures: %+v", m.Status.Failures)
	}
	c.mustBeStored(geese, map[string]int{"v2": n, "v1": 0})
	c.mustBeTrimmedLast(geese)
	t.Logf("%d of %d objects written around one that was refused; %+v in the end", n-1, n, *m.Status.Storage)
}
