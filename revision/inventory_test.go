package revision

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
)

// Users of a version are named in the same order each time: a trigger's condition
// repeats it, and would be written anew by every scan.
func TestUsersOfAVersionAreInOrder(t *testing.T) {
	t.Parallel()
	crds := map[schema.GroupResource]decision.CRD{}
	for _, resource := range []string{"d", "b", "a", "e", "c"} {
		crds[schema.GroupResource{Group: "example.com", Resource: resource}] = decision.CRD{Found: true, StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}}
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

// TestWhatUpgradesAimAtIsNotDroppable, though nothing is left at it before the first one.
func TestWhatUpgradesAimAtIsNotDroppable(t *testing.T) {
	t.Parallel()
	s := newInventoryBuilder([]string{"v1alpha1", "v1beta1"})
	s.item(decision.Item{Namespace: "shop", Name: "web", Version: "v1alpha1", Target: "v1beta1"})
	s.crds(map[schema.GroupResource]decision.CRD{{Resource: "a"}: {Found: true, StorageVersion: "v1", StoredVersions: []string{"v1"}}})
	if got := s.end(); len(got.Droppable) > 0 || len(got.InUse) != 1 || got.InUse[0].Version != "v1alpha1" {
		t.Errorf("droppable are %v, held %v; want v1alpha1 held, and v1beta1 neither", got.Droppable, got.InUse)
	}
}

func TestUnknownStorageVersionsAreNamedOnce(t *testing.T) {
	t.Parallel()
	crds := map[schema.GroupResource]decision.CRD{
		{Resource: "a"}: {Found: true, StorageVersion: "v1"}, {Resource: "b"}: {Found: true, StorageVersion: "v1beta1"}, {Resource: "c"}: {Found: true, StorageVersion: "v1"}, {Resource: "d"}: {},
	}
	if got := UnknownStorageVersions(decision.Description{Versions: []string{"v1beta1"}, Targets: []string{"v1beta1"}}, crds); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("ahead are %v, want v1 once, and nothing of what is not installed", got)
	}
}
