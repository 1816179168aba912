package operator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/api/v1alpha1"
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
	c.awaitReason(geese, v1alpha1.ReasonSucceeded)

	var before time.Time
	var during, others int
	cursors := map[string]bool{}
	for _, state := range c.history("/registry/godwit.dev/crdmigrations/" + geese) {
		at := statusWritten(t, state)
		cursor, _, _ := unstructured.NestedString(state, "status", "checkpoint", "cursor")
		cursors[cursor] = true
		if _, under, _ := unstructured.NestedMap(state, "status", "checkpoint"); !under {
			others++
			before = time.Time{}
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
	if others > 3 { // made, without its checkpoint, and Succeeded
		t.Errorf("%d writes before the first checkpoint and after the last one", others)
	}
	t.Logf("%d objects: %d writes of the CRDMigration with a checkpoint, none within 5 s of the one before, and %d without", n, during, others)
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
