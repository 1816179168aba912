package target

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// TestPlantedOriginal: values that a source claims to have replaced, and that the target never restores, do not keep an object marked for ever:
// a later migration would take it for that of another one.
//
// Matrix: H99.
func TestPlantedOriginal(t *testing.T) {
	t.Parallel()
	h := Hub{Hub: cluster.Hub{UID: "uid"}, Account: types.NamespacedName{Namespace: "n", Name: "a"}}
	o := cluster.Object{Rule: resource.Rule{Kind: "Secret"}, Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "c1", "annotations": map[string]any{
			resource.OriginalAnnotation: `{"format":1,"migration":"uid","hubAcceptsClient":true,"deleteOption":{"propagationPolicy":"Orphan"}}`,
		}},
	}}}
	if err := h.prepare(o, true); err != nil {
		t.Fatal(err)
	}
	if cluster.HasOriginal(o, "uid") {
		t.Errorf("the object keeps %v", o.GetAnnotations())
	}
	if !cluster.IsOwned(o, "uid") {
		t.Error("the object is not marked as created by the migration")
	}
}
