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
	definitions := map[schema.GroupResource]Definition{}
	for _, resource := range []string{"d", "b", "a", "e", "c"} {
		definitions[schema.GroupResource{Group: "example.com", Resource: resource}] = Definition{Found: true, Storage: "v2", Stored: []string{"v1", "v2"}}
	}
	for range 20 { // a map's order may be right by chance
		s := newSurveyor([]string{"v1", "v2"})
		s.definitions(definitions)
		survey := s.end()
		if len(survey.Held) != 1 || len(survey.Held[0].By) != maxHolders || !slices.IsSorted(survey.Held[0].By) {
			t.Fatalf("held: %+v, want v1 by five, in the order of their names", survey.Held)
		}
	}
}
