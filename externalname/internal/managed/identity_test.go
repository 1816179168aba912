package managed

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestIdentityIsOutsideTheSpec: the provider writes the fields of the spec to whatever resource a name identifies.
func TestIdentityIsOutsideTheSpec(t *testing.T) {
	m := Of(&unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"forProvider": map[string]any{"name": "bob"}},
		"status": map[string]any{"atProvider": map[string]any{"name": "bob", "mail": "b@example.org", "id": "7", "state": "", "size": int64(0), "tags": []any{}, "manifest": map[string]any{"metadata": map[string]any{"uid": "u"}}}},
	}})
	for name, test := range map[string]struct {
		identity Identity
		want     []string
		mirrored []string
	}{
		"by the CRD and the object": {Identity{Spec: []string{"mail", "manifest"}}, []string{"id"}, []string{"mail", "manifest", "name"}},
		"chosen by the user":        {Identity{Fields: []string{"name"}, Spec: []string{"mail"}}, []string{"name"}, nil},
		"a path":                    {Identity{Fields: []string{"manifest.metadata.uid", "manifest.metadata.name"}}, []string{"manifest.metadata.uid"}, nil},
	} {
		if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(test.identity.Hashes(m)))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(test.mirrored, test.identity.Mirrored(m)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
