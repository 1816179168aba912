package crdmigrator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestObserveIn: a CRD that was listed has the same plan as one that is observed by itself. The facts of
// all CRDs are of the time at which the leases were read: however long a scan takes, no lease becomes
// stale by it.
func TestObserveIn(t *testing.T) {
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	m, err := storageversion.New(w.config, storageversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	crds, err := m.CRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Surroundings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for i := range crds {
		if crds[i].Name != w.name {
			continue
		}
		found = true
		first, err := m.ObserveIn(t.Context(), s, &crds[i])
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		later, err := m.ObserveIn(t.Context(), s, &crds[i])
		if err != nil {
			t.Fatal(err)
		}
		if first.Now.IsZero() || !later.Now.Equal(first.Now) {
			t.Errorf("the facts are of %v and %v, want both of the time at which the leases were read", first.Now, later.Now)
		}
		alone, err := m.Observe(t.Context(), w.name)
		if err != nil {
			t.Fatal(err)
		}
		got, want := decision.PlanFor(later, quickSettle), decision.PlanFor(alone, quickSettle)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the plan of a listed CRD (-observed +listed):\n%s", diff)
		}
		if got.State != decision.Ready || got.Objects == nil || *got.Objects != 3 {
			t.Errorf("the plan is %s of %v objects, want Ready of 3", got.State, got.Objects)
		}
	}
	if !found {
		t.Errorf("the list of %d CRDs has no %s", len(crds), w.name)
	}
}
