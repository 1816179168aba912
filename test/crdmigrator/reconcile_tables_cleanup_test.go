package crdmigrator_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The cleanup of managedFields of Cluster API's crdmigrator as a table, a test
// for each row, in its order:
//
//	observed                  action                            test TestCleanup_…
//	no objects                nothing                           NeedsNoObjects
//	object has no entries     next object                       SkipsAnObjectWithoutEntries
//	entries are served        next object                       SkipsServedEntries
//	entries are not served    remove them                       RemovesUnservedEntries
//	all entries removed       seed one in the first's name      SeedsAnObjectThatIsLeftWithoutEntries
//	patch succeeds, NotFound  next object                       EndsWithThePatchOrTheObject
//	patch answers Conflict    read again, try again             ReadsLiveAfterAConflict
//	patch fails otherwise     gather the errors, next object    ContinuesAfterAFailure

// embeddedOutliving is a CRD whose objects were created at v1 and migrated to v2, before
// v1 was no longer served: only their managedFields still name it.
func embeddedOutliving(t *testing.T, e embedding, create func(*widgets)) (*widgets, *configured) {
	t.Helper()
	w := newWidgets(t, shared)
	create(w)
	w.flip()
	c := w.embed(e)
	c.mustReconcile()
	w.unserve()
	return w, c
}

// cleaned is the outcome of a complete migration of n objects.
func cleaned(n int) outcome {
	return outcome{Stored: map[string]int{"v2": n}, StoredVersions: "v2", Observed: true}
}

func TestCleanup_NeedsNoObjects(t *testing.T) {
	t.Parallel()
	w, c := embeddedOutliving(t, embedding{}, func(*widgets) {})
	if writes := w.writesIn(c.mustReconcile()); len(writes) > 0 {
		t.Errorf("writes = %q, want none without objects", writes)
	}
	w.mustLeave("no objects", outcome{Stored: map[string]int{}, StoredVersions: "v2", Observed: true})
}

// After a reset of managedFields, the next apply creates new ones, and the cleanup must
// not prevent that.
func TestCleanup_SkipsAnObjectWithoutEntries(t *testing.T) {
	t.Parallel()
	w, c := embeddedOutliving(t, embedding{}, func(w *widgets) {
		w.fill("v1", 1)
		reset := []byte(`{"metadata":{"managedFields":[{}]}}`)
		if _, err := w.at("v1").Patch(t.Context(), "w-0000", types.MergePatchType, reset, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	w.mustHaveEntries("after the reset", "w-0000")
	if writes := w.writesIn(c.mustReconcile()); len(writes) > 0 {
		t.Errorf("writes = %q, want none without entries to clean", writes)
	}
	w.mustHaveEntries("after the cleanup", "w-0000")
	w.mustLeave("nothing to clean", cleaned(1))
}

func TestCleanup_SkipsServedEntries(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.mustApply("painter", "v1", "w-0000")
	w.flip()
	w.mustApply("decorator", "v2", "w-0001")
	c := w.embed(embedding{})
	c.mustReconcile()
	before := w.writes()
	w.setVersions(version("v1", true, false), version("v2", true, true), version("v3", true, false))
	if writes := w.writesIn(c.mustReconcile()); len(writes) > 0 {
		t.Errorf("writes = %q, want none while all versions are served", writes)
	}
	if diff := cmp.Diff(before, w.writes()); diff != "" {
		t.Errorf("writes in etcd (-before +after):\n%s", diff)
	}
	w.mustHaveEntries("v1 is still served", "w-0000", "painter Apply v1")
	w.mustHaveEntries("v2 is served", "w-0001", "decorator Apply v2")
	w.mustLeave("nothing to clean", cleaned(2))
}

func TestCleanup_RemovesUnservedEntries(t *testing.T) {
	t.Parallel()
	w, c := embeddedOutliving(t, embedding{}, func(w *widgets) { w.mustApply("painter", "v1", "w-0000") })
	w.mustApply("decorator", "v2", "w-0001")
	w.mustApply("decorator", "v2", "w-0002")
	status := []byte(`{"status":{"phase":"Up"}}`)
	if _, err := w.at("v2").Patch(t.Context(), "w-0000", types.MergePatchType, status, metav1.PatchOptions{FieldManager: "prober"}, "status"); err != nil {
		t.Fatal(err)
	}
	w.mustHaveEntries("before", "w-0000", "painter Apply v1", "prober Update v2 status")
	if writes := w.writesIn(c.mustReconcile()); len(writes) != 1 || !with("/widgets/w-0000?")(writes[0]) {
		t.Errorf("writes = %q, want the object with entries of v1, and no subresource", writes)
	}
	w.mustHaveEntries("the entry of v1 is removed, the other stays", "w-0000", "prober Update v2 status")
	w.mustHaveEntries("without an entry of v1", "w-0001", "decorator Apply v2")
	w.mustLeave("after the cleanup", cleaned(3))
}

// The seed has the manager and operation of the first removed entry, only the field
// f:metadata/f:name, and the storage version.
func TestCleanup_SeedsAnObjectThatIsLeftWithoutEntries(t *testing.T) {
	t.Parallel()
	w, c := embeddedOutliving(t, embedding{}, func(w *widgets) {
		w.mustApply("painter", "v1", "w-0000")
		w.otherClient("v1").paints("w-0000", "green")
	})
	w.mustHaveEntries("before", "w-0000", "painter Apply v1", "other-client Update v1")
	c.mustReconcile()
	w.mustHaveEntries("seeded", "w-0000", "painter Apply v2")
	o, err := w.at("v2").Get(t.Context(), "w-0000", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(o.GetManagedFields()[0].FieldsV1.GetRawBytes(), &fields); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"f:metadata": map[string]any{"f:name": map[string]any{}}}
	if diff := cmp.Diff(any(want), fields); diff != "" {
		t.Errorf("fields of the seed (-want +got):\n%s", diff)
	}
	w.mustLeave("after the cleanup", cleaned(1))
}

// The difference: a list of the collection confirms a 404, as in the migration.
func TestCleanup_EndsWithThePatchOrTheObject(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		delete bool
		want   outcome
	}{
		"patched": {reason: "the patch succeeds", want: cleaned(3)},
		"deleted": {reason: "nothing is left to clean", delete: true, want: cleaned(2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var happens func(*http.Request)
			w, c := embeddedOutliving(t, embedding{wire: before(func(r *http.Request) {
				if happens != nil {
					happens(r)
				}
			})}, func(w *widgets) { w.fill("v1", 3) })
			other := w.otherClient("v2")
			happens = func(r *http.Request) {
				if tc.delete && patches(r, "w-0001") {
					other.deletes("w-0001")
				}
			}
			sent := c.mustReconcile()
			if writes := w.writesIn(sent); len(writes) != 3 {
				t.Errorf("%s: wrote %q, want each of 3 objects once", tc.reason, writes)
			}
			if looked := slices.ContainsFunc(w.readsIn(sent), with("fieldSelector=metadata.name%3Dw-0001")); looked != tc.delete {
				t.Errorf("%s: listed to confirm that the object is gone: %v, want %v", tc.reason, looked, tc.delete)
			}
			w.mustLeave(tc.reason, tc.want)
		})
	}
}

// The difference: the object is read live with UseCache too, because the object of a cache
// that has not seen the other write would conflict again. After three conflicts the object
// is left to the next pass.
func TestCleanup_ReadsLiveAfterAConflict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		conflicts int64
		deferred  bool
	}{
		"one":   {reason: "the second attempt meets no conflict", conflicts: 1},
		"three": {reason: "after three conflicts the object is left to another pass", conflicts: 3, deferred: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var met atomic.Int64
			var happens func()
			w, c := embeddedOutliving(t, embedding{wire: before(func(r *http.Request) {
				if happens != nil && patches(r, "w-0001") && met.Add(1) <= tc.conflicts {
					happens()
				}
			})}, func(w *widgets) { w.fill("v1", 3) })
			other := w.otherClient("v2")
			happens = func() { other.paints("w-0001", "shade-"+strings.Repeat("i", int(met.Load()))) }
			if tc.deferred {
				_, err := c.mustFail()
				if err != nil && !strings.Contains(err.Error(), "w-0001") {
					t.Errorf("%s: the error is %q, want it to name the object", tc.reason, err)
				}
				w.mustHaveEntries("other objects are cleaned", "w-0002", "crdmigrator.test Update v2")
				w.mustLeave(tc.reason, outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v2"})
			}
			c.mustReconcile()
			if got, want := met.Load(), tc.conflicts+1; got != want {
				t.Errorf("%s: %d attempts, want %d", tc.reason, got, want)
			}
			w.mustHaveEntries("in the end", "w-0001", "other-client Update v2")
			w.mustLeave("in the end", cleaned(3))
		})
	}
}

// The difference: the error counts the objects and names the first.
func TestCleanup_ContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	c := w.embed(embedding{by: byStatus})
	c.mustReconcile() // past the webhook, by /status
	w.unserve()
	sent, err := c.mustFail()
	if writes := w.writesIn(sent); len(writes) != 10 {
		t.Errorf("writes = %q, want one for each of 10 objects", writes)
	}
	for _, part := range []string{w.name, "managedFields of 1 objects", "default/w-0003", h.name} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want it to say %q", err, part)
		}
	}
	w.mustHaveEntries("denied", "w-0003", "crdmigrator.test Update v1")
	w.mustHaveEntries("after the one that is denied", "w-0009", "crdmigrator.test Update v2")
	w.mustLeave("one object was denied", outcome{Stored: map[string]int{"v2": 10}, StoredVersions: "v2"})
}
