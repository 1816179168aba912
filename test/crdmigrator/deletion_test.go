package crdmigrator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typedv1 "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// createAgain deletes the CRD, and creates another one with its name, its generation and as many objects at v1.
func (w *widgets) createAgain(again *apiextensionsv1.CustomResourceDefinition, n int) {
	w.t.Helper()
	old := w.crd()
	w.removeCRD()
	if err := controlplane.InstallCRDs(w.t.Context(), w.config, again); err != nil {
		w.t.Fatal(err)
	}
	w.fill("v1", n)
	w.flip()
	for generation := w.crd().Generation; generation < old.Generation; generation++ {
		w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = fmt.Sprint("of generation ", generation+1)
		})
	}
	if now := w.crd(); now.UID == old.UID || now.Generation != old.Generation {
		w.t.Fatalf("the new CRD has UID %s and generation %d, want another UID and generation %d", now.UID, now.Generation, old.Generation)
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
	run := w.pauseAfter(t.Context(), m, 30)
	checkpoint := w.crd().Annotations[evidence.CheckpointAnnotation]
	if checkpoint == "" {
		t.Fatal("the run under way has no checkpoint")
	}

	again := w.newCRD()
	metav1.SetMetaDataAnnotation(&again.ObjectMeta, evidence.CheckpointAnnotation, checkpoint)
	w.createAgain(again, 40)
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

// TestCRDCreatedAgainBeforeTheTrim: a run is about to remove its checkpoint, and the CRD of that name is a new one, which has the
// checkpoint of another run. That stays.
func TestCRDCreatedAgainBeforeTheTrim(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 40)
	w.flip()
	config, wire := tap(w.config)
	writes := 0
	h := wire.haltBefore(t, func(r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/"+w.name) {
			writes++
		}
		return writes == 2 // the first one saves the checkpoint
	})
	run := w.pauseAt(t.Context(), newMigrator(t, config, storageversion.Options{Policy: quickSettle}), h, nil)

	again := w.newCRD()
	metav1.SetMetaDataAnnotation(&again.ObjectMeta, evidence.CheckpointAnnotation, "{}")
	w.createAgain(again, 40)
	report, err := run.resume()
	mustStopForChange(t, report, err)
	w.mustHaveStoredVersions("after the run on the old CRD", "v1,v2")
	if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; !ok {
		t.Error("the run on the old CRD has removed the checkpoint of the new one")
	}
}

// TestCRDCreatedAgainBeforeACleanup: a run is about to clean an object whose entry is of a version that is not served, and both the
// object and the CRD are new ones. The new CRD serves the version.
func TestCRDCreatedAgainBeforeACleanup(t *testing.T) {
	t.Parallel()
	w := outlived(t, 10)
	config, wire := tap(w.config)
	h := wire.haltBefore(t, func(r *http.Request) bool {
		return r.Header.Get("Content-Type") == string(types.JSONPatchType) && strings.HasSuffix(r.URL.Path, "/w-0003")
	})
	run := w.pauseAt(t.Context(), newMigrator(t, config, storageversion.Options{Policy: quickSettle}), h, nil)

	w.createAgain(w.newCRD(), 10)
	report, err := run.resume()
	mustStopForChange(t, report, err)
	o, err := w.at("v2").Get(t.Context(), "w-0003", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if entries := o.GetManagedFields(); len(entries) != 1 || entries[0].APIVersion != w.group+"/v1" {
		t.Errorf("the run on the old CRD has written the new object: managedFields %+v, want those of its creation at v1", entries)
	}
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
