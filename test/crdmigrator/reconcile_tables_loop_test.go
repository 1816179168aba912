package crdmigrator_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// The main reconcile loop of Cluster API's crdmigrator as a table, a test for
// each row, in its order:
//
//	observed                          action                            test TestLoop_…
//	CRD exists, not in config         skip                              SkipsKindsThatConfigDoesNotName
//	CRD not found                     return without error              EndsForACRDThatIsGone
//	observed generation is current    skip                              SkipsAnObservedGeneration
//	storedVersions are dirty          migrate, then trim storedVersions MigratesDirtyStoredVersionsThenTrims
//	migration complete or skipped     clean managedFields               CleansAfterTheMigrationOrWithoutIt
//	all phases complete               annotate the generation           MarksTheGenerationLast
//	any phase failed                  no annotation, an error           DoesNotMarkWhatFailed

func TestLoop_SkipsKindsThatConfigDoesNotName(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	gadgets := &widgets{t: t, plane: shared, group: w.group, plural: "gadgets", kind: "Gadget"}
	gadgets.install()
	gadgets.fill("v1", 5)
	gadgets.flip()
	c := w.embed(embedding{})
	c.w = gadgets
	sent := c.mustReconcile()
	if want := []string{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + gadgets.name}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q: the read of the CRD shows that its kind is not configured", sent, want)
	}
	gadgets.mustLeave("a kind that is not in Config", outcome{Stored: map[string]int{"v1": 5}, StoredVersions: "v1,v2"})
}

func TestLoop_EndsForACRDThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	c := w.embed(embedding{})
	w.removeCRD()
	if sent := c.mustReconcile(); len(sent) != 1 {
		t.Errorf("sent %q, want one read of the CRD", sent)
	}
}

// The difference: the annotation is not enough, and the migrator also reads storedVersions;
// TestAnnotation_DoesNotHideRestoredStoredVersions shows why.
func TestLoop_SkipsAnObservedGeneration(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	c := w.embed(embedding{})
	c.mustReconcile()
	w.mustLeave("after the migration", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
	sent := c.mustReconcile()
	if want := []string{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + w.name}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q: neither a list nor a write", sent, want)
	}
}

func TestLoop_MigratesDirtyStoredVersionsThenTrims(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	c := w.embed(embedding{})
	c.mustReconcile()
	w.mustLeave("v1 alone", outcome{Stored: map[string]int{"v1": 5}, StoredVersions: "v1", Observed: true})
	w.flip()
	w.mustLeave("a new generation is not observed", outcome{Stored: map[string]int{"v1": 5}, StoredVersions: "v1,v2"})

	sent := c.mustReconcile()
	w.mustLeave("after the migration", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
	writes := w.writesIn(sent)
	if len(writes) != 5 {
		t.Fatalf("wrote %q, want each of 5 objects once", writes)
	}
	trim := slices.IndexFunc(sent, with("/customresourcedefinitions/"+w.name+"/status"))
	if last := slices.Index(sent, writes[4]); trim < last {
		t.Errorf("storedVersions were trimmed by request %d, the last object was written by %d", trim, last)
	}
}

// The difference: where an object needs both, one patch does both, because a cleanup is a
// write through the storage version; see "with the migration".
func TestLoop_CleansAfterTheMigrationOrWithoutIt(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		skip   []crdmigrator.Phase
		before func(*widgets, *configured)
		want   outcome
	}{
		"with the migration": {
			reason: "both are due in one pass",
			before: func(w *widgets, _ *configured) { w.flip() },
			want:   outcome{Stored: map[string]int{"v2": 2}, StoredVersions: "v2", Observed: true},
		},
		"after it": {
			reason: "storedVersions were trimmed while v1 was still served",
			before: func(w *widgets, c *configured) { w.flip(); c.mustReconcile() },
			want:   outcome{Stored: map[string]int{"v2": 2}, StoredVersions: "v2", Observed: true},
		},
		"without it": {
			reason: "the migration is skipped by configuration",
			skip:   []crdmigrator.Phase{crdmigrator.StorageVersionMigrationPhase},
			before: func(w *widgets, _ *configured) { w.flip() },
			want:   outcome{Stored: map[string]int{"v2": 2}, StoredVersions: "v1,v2", Observed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			c := w.embed(embedding{skip: tc.skip})
			w.mustApply("painter", "v1", "w-0000")
			w.mustApply("painter", "v1", "w-0001")
			tc.before(w, c)
			w.unserve()
			if writes := w.writesIn(c.mustReconcile()); len(writes) != 2 {
				t.Errorf("%s: wrote %q, want each object once", tc.reason, writes)
			}
			w.mustLeave(tc.reason, tc.want)
			w.mustHaveEntries(tc.reason, "w-0000", "painter Apply v2")
			w.mustHaveEntries(tc.reason, "w-0001", "painter Apply v2")
		})
	}
}

func TestLoop_MarksTheGenerationLast(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	var marks []bool
	c := w.embed(embedding{wire: before(func(r *http.Request) {
		if patches(r, w.name) {
			marks = append(marks, contains(t, r, crdmigrator.ClusterAPIObservedGenerationAnnotation))
		}
	})})
	sent := c.mustReconcile()
	w.mustLeave("all phases complete", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
	if want := "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + w.name; !with(want)(sent[len(sent)-1]) {
		t.Errorf("the last request is %q, want %q", sent[len(sent)-1], want)
	}
	// Before it: the checkpoint is saved, and removed again.
	if want := []bool{false, false, true}; !slices.Equal(marks, want) {
		t.Errorf("which patches of the CRD carry the annotation: %v, want %v", marks, want)
	}
}

func TestLoop_DoesNotMarkWhatFailed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		begin  func(*widgets, *configured)
		want   outcome
	}{
		"migration": {
			reason: "an object is left at v1",
			begin:  func(*widgets, *configured) {},
			want:   outcome{Stored: map[string]int{"v1": 1, "v2": 4}, StoredVersions: "v1,v2"},
		},
		"cleanup": {
			reason: "an object is left with entries of v1",
			begin:  func(w *widgets, c *configured) { c.mustReconcile(); w.unserve() },
			want:   outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			c := w.embed(embedding{})
			h := w.newWebhook(deny("w-0003"))
			w.awaitRefused("w-0003", denied)
			h.setDecide(allow)
			tc.begin(w, c)
			h.setDecide(deny("w-0003"))
			if _, err := c.mustFail(); err != nil && !denied(err) {
				t.Errorf("%s: the error is %v, want it to name the webhook that denied the write", tc.reason, err)
			}
			w.mustLeave(tc.reason, tc.want)

			h.setDecide(allow)
			c.mustReconcile()
			w.mustLeave("once it is allowed", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
		})
	}
}
