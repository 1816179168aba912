package crdmigrator_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// inTreeGroup is the API group of Kubernetes' own migrator.
const inTreeGroup = "storagemigration.k8s.io"

// inTree is the client for StorageVersionMigrations, at the version that the server prefers.
func (w *widgets) inTree() dynamic.ResourceInterface {
	w.t.Helper()
	versions := storageMigrationVersions(w.t, w.plane)
	if len(versions) == 0 {
		w.t.Fatal("the API server serves no StorageVersionMigrations")
	}
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: inTreeGroup, Version: versions[0], Resource: "storageversionmigrations"})
}

// migrateInTree starts Kubernetes' own migrator. v1alpha1, of Kubernetes before 1.35, also has the version through
// which to write.
func (w *widgets) migrateInTree() (name string) {
	w.t.Helper()
	name = "of-" + w.group
	version := storageMigrationVersions(w.t, w.plane)[0]
	resource := map[string]any{"group": w.group, "resource": w.plural}
	if version == "v1alpha1" {
		resource["version"] = "v2"
	}
	_, err := w.inTree().Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": inTreeGroup + "/" + version, "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"resource": resource},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

// inTreeEnded is the condition with which a migration ended, Succeeded or Failed; empty while it has not.
func (w *widgets) inTreeEnded(name string) string {
	w.t.Helper()
	s, err := w.inTree().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(s.Object, "status", "conditions")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if kind, _ := c["type"].(string); c["status"] == "True" && kind != "Running" {
			return kind
		}
	}
	return ""
}

// migrating is the reason of the in-tree migrator's condition on the CRD.
func (w *widgets) migrating() (reason string) {
	w.t.Helper()
	for _, c := range w.crd().Status.Conditions {
		if c.Type == apiextensionsv1.StorageMigrating {
			return c.Reason
		}
	}
	return ""
}

// TestInTreeMigratorRunning: until the in-tree migrator has ended, our plan is Blocked
// and we write nothing. It does not trim storedVersions, because the CRD was edited
// meanwhile; our run then continues and trims.
func TestInTreeMigratorRunning(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, ownPlane(t))
	w.fill("v1", 20)
	w.flip()
	h := w.newWebhook(deny("w-0000"))
	w.awaitRefused("w-0000", denied)
	writes := newHalt(t) // after the webhook, which waits at its end for held requests
	stand := sync.OnceFunc(func() { close(writes.reached) })
	h.setDecide(func(string) string { stand(); <-writes.released; return "" })
	if _, err := w.plane.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := w.migrateInTree()
	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})

	// The plan is Blocked from the start, also before the other migrator writes.
	for i := range 2 {
		plan, err := m.Plan(t.Context(), w.name)
		if err != nil {
			t.Fatal(err)
		}
		mustBeBlocked(t, plan, decision.ReasonMigrationInProgress, 1)
		if b := plan.Blockers[0]; !strings.Contains(b.Message, "storageversionmigrations.storagemigration.k8s.io/"+name) {
			t.Errorf("blocker = %q, want it to name %s", b.Message, name)
		}
		var blocked *decision.BlockedError
		if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
			t.Errorf("running a blocked plan: %v, want BlockedError", err)
		}
		if i == 0 {
			await(t, "the migrator to write", writes.isReached)
		}
	}
	if got := w.migrating(); got != "MigrationRunning" {
		t.Errorf("reason of condition StorageMigrating = %q, want MigrationRunning", got)
	}
	w.mustHaveBeenWritten("while the other migrator runs", 20, 1)
	w.mustHaveStoredVersions("while the other migrator runs", "v1,v2")

	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "a widget"
	})
	writes.release()
	await(t, "the migrator to end", func() bool { return w.migrating() == "MigrationSucceeded" })
	w.mustHaveStoredVersions("after the other migrator", "v1,v2")
	report := w.mustMigrate(m)
	if want := (godwit.Counts{Unchanged: 20}); report.Storage.Counts != want {
		t.Errorf("run: %+v, want %+v", report.Storage, want)
	}
	w.mustBeMigrated(report, 20)
	w.mustBeWrittenOnce()
}

// TestInTreeMigrationThatFailed: Kubernetes 1.37 trims storedVersions also after a
// failed migration, with objects left at the old version. Our plan does not rely on
// storedVersions then.
func TestInTreeMigrationThatFailed(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, ownPlane(t))
	w.fill("v1", 20)
	w.flip()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	if _, err := w.plane.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.migrateInTree()
	await(t, "the migrator to end", func() bool { return w.migrating() == "MigrationFailed" })
	w.mustHaveStoredVersions("trimmed in vain", "v2")
	if n := w.stored()["v1"]; n == 0 {
		t.Fatal("the failed migration left no object at v1, want some")
	}

	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})
	for _, object := range []string{"w-0003", ""} {
		h.setDecide(deny(object))
		plan, err := m.Plan(t.Context(), w.name)
		if err != nil {
			t.Fatal(err)
		}
		if plan.State != decision.Ready {
			t.Errorf("with %v in etcd, plan is %s, want Ready", w.stored(), plan.State)
		}
		report := w.mustMigrate(m)
		if report.Trimmed != (object == "") {
			t.Errorf("with %q denied: %+v, trimmed %v", object, report.Storage, report.Trimmed)
		}
	}
	w.mustBeStored("in the end", map[string]int{"v2": 20})
	w.mustHaveStoredVersions("in the end", "v2")
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Clean {
		t.Errorf("plan in the end = %s, want Clean", plan.State)
	}
}

// TestConditionOfAMigrationThatIsGone: the condition of a deleted in-tree migration
// does not block a run.
func TestConditionOfAMigrationThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	crd := w.crd()
	crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionTrue, Reason: "MigrationRunning",
		Message: "Migration gone is running", LastTransitionTime: metav1.Now(), ObservedGeneration: crd.Generation,
	})
	if _, err := w.crds().UpdateStatus(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	w.mustBeMigrated(report, 20)
	if got := w.migrating(); got != "MigrationRunning" {
		t.Errorf("reason of condition StorageMigrating = %q, want it unchanged", got)
	}
}
