package operator

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestManagerBlocksWhatLosesValues: the storage version lacks a field that an object has. The condition Blocked and the blockers name
// it, and nothing is written, until spec.acceptLosses has the path. Then the status says how each value was proven.
func TestManagerBlocksWhatLosesValues(t *testing.T) {
	c := newCluster(t)
	name := c.define("swans", 3, nil)
	rich := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "white"}}}
	rich.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: "Swan"})
	rich.SetName("o-rich")
	if err := c.Create(t.Context(), rich); err != nil {
		t.Fatal(err)
	}
	poor := version("v2", true, true)
	poor.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
	_, err := controlplane.UpdateCRD(t.Context(), c.plane.Config(), name, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), poor}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	c.manage("storageVersionMigrator: {scopes: [{group: none.example.com, labelSelector: {matchLabels: {migrate: never}}}], defaults: {settle: 0s}}")
	m := c.awaitReason(name, storagedecision.ReasonBlocked.Name)
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	const message = "drops values of objects: spec (1 object, such as o-rich)"
	if blocked == nil || blocked.Reason != storagedecision.ReasonFieldsWouldBeLost.Name || len(m.Status.Blockers) != 1 {
		t.Fatalf("condition %+v, blockers %+v, want FieldsWouldBeLost", blocked, m.Status.Blockers)
	}
	const remedy = `kubectl patch crdmigration swans.` // as below
	if b := m.Status.Blockers[0]; !strings.Contains(b.Message, message) || !strings.Contains(b.Remedy, remedy) || !strings.Contains(b.Remedy, `"acceptLosses": ["spec"]`) {
		t.Errorf("blocker %+v, want %q and %q", b, message, remedy)
	}
	c.mustBeStored(name, map[string]int{"v1": 4})

	m.Spec.AcceptLosses = []string{"spec"}
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m = c.awaitReason(name, storagedecision.ReasonSucceeded.Name)
	c.mustBeStored(name, map[string]int{"v2": 4})
	proof := m.Status.Values
	if proof == nil || proof.ProvenBy != string(evidence.ByRoundTrips) || proof.Objects != 4 || len(proof.Accepted) != 1 || proof.Accepted[0] != (v1alpha1.ValueLoss{Path: "spec", Objects: 1}) {
		t.Errorf("status.values: %+v, want round trips of 4 objects, with spec of one given up", proof)
	}
}
