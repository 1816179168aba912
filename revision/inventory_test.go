package revision

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Users of a version are named in the same order each time: a trigger's condition
// repeats it, and would be written anew by every scan.
func TestUsersOfAVersionAreInOrder(t *testing.T) {
	t.Parallel()
	crds := map[schema.GroupResource]CRD{}
	for _, resource := range []string{"d", "b", "a", "e", "c"} {
		crds[schema.GroupResource{Group: "example.com", Resource: resource}] = CRD{Found: true, StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}}
	}
	for range 20 { // a map's order may be right by chance
		s := newInventoryBuilder([]string{"v1", "v2"})
		s.crds(crds)
		inventory := s.end()
		if len(inventory.InUse) != 1 || len(inventory.InUse[0].UsedBy) != maxUsers || !slices.IsSorted(inventory.InUse[0].UsedBy) {
			t.Fatalf("held: %+v, want v1 by five, in the order of their names", inventory.InUse)
		}
	}
}
