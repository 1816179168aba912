package operator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestStatusIsLeftAloneForFiveSeconds after each write of it while objects are
// written: between its first checkpoint, without which nothing may be written, and
// the last one's removal, without which nothing may be trimmed.
func TestStatusIsLeftAloneForFiveSeconds(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 1800 // several pages, for each of which a cursor might be saved
	geese := c.define("geese", n, optedIn)
	c.manage(c.slowly(80))
	c.flip(geese)
	c.awaitReason(geese, decision.ReasonSucceeded.Name)

	var before time.Time
	var during, after int
	cursors := map[string]bool{}
	for _, state := range c.history("/registry/godwit.dev/crdmigrations/" + geese) {
		at := statusWritten(t, state)
		cursor, _, _ := unstructured.NestedString(state, "status", "checkpoint", "cursor")
		cursors[cursor] = true
		if _, under, _ := unstructured.NestedMap(state, "status", "checkpoint"); !under {
			if during > 0 {
				after++
			}
			continue
		}
		// Both are cut to the second, which five full seconds survive.
		if during++; !before.IsZero() && at.Sub(before) < 5*time.Second {
			t.Errorf("the status was written at %s and again at %s", before.Format(time.TimeOnly), at.Format(time.TimeOnly))
		}
		before = at
	}
	if during < 4 || len(cursors) < 2 {
		t.Fatalf("%d writes, %d cursors: too few to tell", during, len(cursors))
	}
	if after > 2 {
		t.Errorf("%d writes in the end, want one without the checkpoint, before the trim, and Succeeded", after)
	}
	t.Logf("%d objects: %d writes of the CRDMigration with a checkpoint, none within 5 s of the one before, and %d in the end", n, during, after)
}

// TestProgressIsAboutTheSpecThatItWasMadeFor: the run that is to stop before its
// next page still says how far it is, and not that this is what was asked for.
func TestProgressIsAboutTheSpecThatItWasMadeFor(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	geese := c.define("geese", 150, optedIn) // the second page comes after 12 s, since the first has 50 objects
	c.manage(c.slowly(4))
	c.flip(geese)
	c.awaitReason(geese, crdmigration.ReasonMigrating.Name)
	c.suspend(geese, true)
	c.awaitReason(geese, crdmigration.ReasonSuspended.Name)
	meanwhile := 0
	for _, state := range c.history("/registry/godwit.dev/crdmigrations/" + geese) {
		m := &v1alpha1.CRDMigration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(state, m); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || !m.Spec.Suspend || ready.Reason != crdmigration.ReasonMigrating.Name {
			continue
		}
		meanwhile++
		if ready.ObservedGeneration == m.Generation || m.Status.ObservedGeneration == m.Generation {
			t.Errorf("it is suspended, and says that Migrating is what it should do: %+v", ready)
		}
	}
	if meanwhile < 2 {
		t.Error("no progress was written after the suspension")
	}
	t.Logf("%d states of the CRDMigration between its suspension and the end of the page", meanwhile)
}

// statusWritten is when the API server says that the manager last wrote it.
func statusWritten(t *testing.T, state map[string]any) time.Time {
	t.Helper()
	for _, e := range (&unstructured.Unstructured{Object: state}).GetManagedFields() {
		if e.Subresource == "status" && e.Time != nil {
			return e.Time.Time
		}
	}
	return time.Time{}
}
