package crdmigrator_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// TestLifecycleOfAVersion follows a version from being the only one to its removal.
func TestLifecycleOfAVersion(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle, PageObjects: 40})
	w.fill("v1", 100)

	// Added: v2 is served, nothing is stored at it.
	w.setVersions(version("v1", true, true), version("v2", true, false))
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Clean {
		t.Errorf("plan after adding a version = %s, want Clean", plan.State)
	}

	// Storage: from now on objects are written at v2, and existing ones stay at v1.
	w.flip()
	w.mustBeStored("a change of the storage version rewrites no object", map[string]int{"v1": 100})
	if err := w.trySetVersions(version("v2", true, true)); !apierrors.IsInvalid(err) {
		t.Fatalf("dropping v1 while it is in storedVersions: %v, want Invalid", err)
	}
	plan, err = m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Ready || plan.Objects == nil || *plan.Objects != 100 {
		t.Errorf("plan = %+v, want Ready with 100 objects", plan)
	}

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 100}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustBeStored("after the run", map[string]int{"v2": 100})
	w.mustHaveStoredVersions("after the run", "v2")
	if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; ok {
		t.Error("the checkpoint outlived the migration")
	}

	// Unserved, then removed: every object is still there and readable.
	w.setVersions(version("v1", false, false), version("v2", true, true))
	w.setVersions(version("v2", true, true))
	list, err := w.at("v2").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 100 {
		t.Errorf("%d objects are readable after v1 was removed, want 100", len(list.Items))
	}
	for _, o := range list.Items {
		if of, _, _ := unstructured.NestedString(o.Object, "spec", "of"); of != o.GetName() {
			t.Errorf("object %s has spec.of %q: not the object that was written", o.GetName(), of)
		}
	}

	// Nothing is left to do.
	plan, err = m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Clean {
		t.Errorf("plan in the end = %s, want Clean", plan.State)
	}
}
