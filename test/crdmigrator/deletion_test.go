package crdmigrator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typedv1 "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
)

func (w *widgets) crds() typedv1.CustomResourceDefinitionInterface {
	w.t.Helper()
	clients, err := clientset.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return clients.ApiextensionsV1().CustomResourceDefinitions()
}

// removeCRD deletes the CRD and waits until it and all objects are gone.
func (w *widgets) removeCRD() {
	w.t.Helper()
	if err := w.crds().Delete(w.t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the CRD to be gone", func() bool {
		_, err := w.crds().Get(w.t.Context(), w.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// TestCRDDeletedMidRun: the run stops and reports the deletion, not a list of objects
// that it did not find.
func TestCRDDeletedMidRun(t *testing.T) {
	t.Parallel()
	for name, pageObjects := range map[string]int64{"pages to come": 20, "on the last page": 500} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			m := w.quickMigrator(storageversion.Options{PageObjects: pageObjects})
			w.fill("v1", 100)
			w.flip()
			run := w.pauseAfter(t.Context(), m, 30)
			w.removeCRD()
			report, err := run.resume()
			mustStopForChange(t, report, err)
			if _, err := m.Plan(t.Context(), w.name); !errors.Is(err, decision.ErrNotFound) {
				t.Errorf("plan of the deleted CRD: %v, want ErrNotFound", err)
			}
		})
	}
}

// TestCRDCreatedAgainMidRun: the evidence about the old CRD does not count for the new
// one, even if that has the checkpoint of the old one, as after a restore from a
// backup.
func TestCRDCreatedAgainMidRun(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{PageObjects: 20})
	w.fill("v1", 100)
	w.flip()
	old := w.crd()
	run := w.pauseAfter(t.Context(), m, 30)
	checkpoint := w.crd().Annotations[evidence.CheckpointAnnotation]
	if checkpoint == "" {
		t.Fatal("the run under way has no checkpoint")
	}

	w.removeCRD()
	again := w.newCRD()
	metav1.SetMetaDataAnnotation(&again.ObjectMeta, evidence.CheckpointAnnotation, checkpoint)
	if err := controlplane.InstallCRDs(t.Context(), w.config, again); err != nil {
		t.Fatal(err)
	}
	w.fill("v1", 40)
	w.flip()
	if now := w.crd(); now.UID == old.UID || now.Generation != old.Generation {
		t.Fatalf("the new CRD has UID %s and generation %d, want another UID and generation %d", now.UID, now.Generation, old.Generation)
	}
	report, err := run.resume()
	mustStopForChange(t, report, err)
	w.mustHaveStoredVersions("after the run on the old CRD", "v1,v2")

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Resumes {
		t.Error("the plan uses the checkpoint of another CRD")
	}
	report = w.mustMigrate(m)
	counts := report.Storage.Counts
	if counts.Skipped != 0 || counts.Total() != 40 {
		t.Errorf("second run: %+v, want a write for each of 40 objects", counts)
	}
	w.mustBeMigrated(report, 40)
}

// TestTerminatingCRDIsBlocked: a CRD that is being deleted is not migrated.
func TestTerminatingCRDIsBlocked(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.fill("v1", 20)
	w.flip()
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Finalizers = append(crd.Finalizers, "test.godwit.dev/hold")
	})
	if err := w.crds().Delete(t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	// The plan is from before the deletion.
	report, err := m.Run(t.Context(), plan, nil)
	mustStopForChange(t, report, err)

	if plan, err = m.Plan(t.Context(), w.name); err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonTerminating, 1)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.crds().Patch(t.Context(), w.name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestUnservedVersionMidRun: when the version is not served any more, the API server
// answers every write of the run with 404, as if the objects were gone.
func TestUnservedVersionMidRun(t *testing.T) {
	t.Parallel()
	for name, pageObjects := range map[string]int64{"pages to come": 20, "on the last page": 500} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			m := w.quickMigrator(storageversion.Options{PageObjects: pageObjects})
			w.fill("v1", 100)
			w.flip()
			run := w.pauseAfter(t.Context(), m, 30)
			w.setVersions(version("v1", true, false), version("v2", false, true))
			report, err := run.resume()
			mustStopForChange(t, report, err)
			if report.Storage.Counts.Gone != 0 {
				t.Errorf("run: %+v, want no object counted as Gone", report.Storage.Counts)
			}
			w.mustHaveStoredVersions("after the run", "v1,v2")
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			mustBeBlocked(t, plan, decision.ReasonStorageVersionNotServed, 1)

			w.setVersions(version("v1", true, false), version("v2", true, true))
			w.mustBeMigrated(w.mustMigrate(m), 100)
		})
	}
}

// TestObjectsThatComeAndGo: objects that are deleted during a run count as Gone.
// Objects that are created during it are at the new version. Neither disturbs the run.
func TestObjectsThatComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{PageObjects: 100})
	w.fill("v1", 200)
	w.flip()
	run := w.pauseAfter(t.Context(), m, 30)
	for i := range 10 {
		w.create(w.config, "v1", fmt.Sprintf("a-new-%d", i)) // before the cursor
		w.create(w.config, "v1", fmt.Sprintf("z-new-%d", i)) // behind the last page
		if err := w.at("v1").Delete(t.Context(), fmt.Sprintf("w-%04d", 90+i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	report, err := run.resume()
	if err != nil {
		t.Fatal(err)
	}
	if want := (godwit.Counts{Migrated: 190, Gone: 10}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustBeStored("after the run", map[string]int{"v2": 210})
}

// TestTerminatingObjects: a terminating object with a finalizer is migrated and stays.
// For one without a finalizer, the write completes the deletion.
func TestTerminatingObjects(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.fill("v1", 20)
	for _, name := range []string{"held-0", "held-1", "loose-0", "loose-1"} {
		w.createTerminating(name)
	}
	w.loosen("loose-0")
	w.loosen("loose-1")
	w.flip()

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 22, Gone: 2}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, failures %+v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, report.Storage.Failures, want)
	}
	w.mustBeStored("after the run", map[string]int{"v2": 22})
	for _, name := range []string{"held-0", "held-1"} {
		o, err := w.at("v2").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) != 1 {
			t.Errorf("%s is no longer terminating with its finalizer: %v", name, o.Object["metadata"])
		}
	}
}

// loosen removes the finalizers of an object in etcd. The API server itself never
// leaves a terminating object without one.
func (w *widgets) loosen(name string) {
	w.t.Helper()
	stored, err := w.plane.Etcd().Get(w.t.Context(), w.key(name))
	if err != nil || len(stored.Kvs) != 1 {
		w.t.Fatalf("read %s from etcd: %v, %v", name, stored, err)
	}
	var object map[string]any
	if err := json.Unmarshal(stored.Kvs[0].Value, &object); err != nil {
		w.t.Fatal(err)
	}
	delete(object["metadata"].(map[string]any), "finalizers")
	value, err := json.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.plane.Etcd().Put(w.t.Context(), w.key(name), string(value)); err != nil {
		w.t.Fatal(err)
	}
}
