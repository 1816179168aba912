package revision

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whoever holds a version is named in the same order each time: a trigger's condition
// repeats it, and would be written anew by every scan.
func TestHoldersHaveAnOrder(t *testing.T) {
	t.Parallel()
	definitions := map[schema.GroupResource]CRD{}
	for _, resource := range []string{"d", "b", "a", "e", "c"} {
		definitions[schema.GroupResource{Group: "example.com", Resource: resource}] = CRD{Found: true, StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}}
	}
	for range 20 { // a map's order may be right by chance
		s := newInventoryBuilder([]string{"v1", "v2"})
		s.crds(definitions)
		survey := s.end()
		if len(survey.InUse) != 1 || len(survey.InUse[0].UsedBy) != maxUsers || !slices.IsSorted(survey.InUse[0].UsedBy) {
			t.Fatalf("held: %+v, want v1 by five, in the order of their names", survey.InUse)
		}
	}
}
