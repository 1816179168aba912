package crdmigrator_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestRefusedCRDs: a plan that is Blocked has the reason, and a run writes nothing.
func TestRefusedCRDs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason *godwit.Reason
		spoil  func(*widgets)
		names  string // what the message must name
	}{
		"version gone from spec": {
			reason: decision.ReasonStoredVersionNotInSpec,
			spoil:  func(w *widgets) { w.setStoredVersions("v0", "v1", "v2") },
			names:  "v0",
		},
		"unserved storage version": {
			reason: decision.ReasonStorageVersionNotServed,
			spoil:  func(w *widgets) { w.setVersions(version("v1", true, false), version("v2", false, true)) },
			names:  "v2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 10)
			w.flip()
			tc.spoil(w)
			m := w.quickMigrator(storageversion.Options{})
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			mustBeBlocked(t, plan, tc.reason, 1)
			if b := plan.Blockers[0]; !strings.Contains(b.Message, tc.names) || !strings.Contains(b.Fix.String(), tc.names) {
				t.Errorf("blocker %+v, want it to name %s and a remedy for it", b, tc.names)
			}
			var blocked *decision.BlockedError
			if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
				t.Errorf("running a blocked plan: %v, want BlockedError", err)
			}
			w.mustHaveBeenWritten("after the refusal", 10, 1)
		})
	}
}

// TestOtherMigratorIsWaitedFor: a run does not begin before a StorageVersionMigration of
// the resource has ended.
func TestOtherMigratorIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	migrations := client.Resource(schema.GroupVersionResource{
		Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations",
	})
	migrationOf := func(name, resource string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"resource": map[string]any{"group": w.group, "resource": resource}},
		}}
	}
	// A migration of another resource does not matter.
	for _, s := range []*unstructured.Unstructured{migrationOf("ours."+w.group, w.plural), migrationOf("other."+w.group, "gadgets")} {
		if _, err := migrations.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonMigrationInProgress, 1)
	if b := plan.Blockers[0]; !strings.Contains(b.Message, "storageversionmigrations.storagemigration.k8s.io/ours."+w.group) || strings.Contains(b.Message, "other.") {
		t.Errorf("blocker = %q, want it to name only the migration of this resource", b.Message)
	}

	for _, condition := range []string{"Running", "Succeeded"} {
		s, err := migrations.Get(t.Context(), "ours."+w.group, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions := []any{map[string]any{
			"type": condition, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
		}}
		if err := unstructured.SetNestedSlice(s.Object, conditions, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(s.Object, "1", "status", "resourceVersion"); err != nil {
			t.Fatal(err)
		}
		if _, err := migrations.UpdateStatus(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if plan, err = m.Plan(t.Context(), w.name); err != nil {
			t.Fatal(err)
		}
		if want := map[string]decision.State{"Running": decision.Blocked, "Succeeded": decision.Ready}[condition]; plan.State != want {
			t.Errorf("with the other migration %s the plan is %s, want %s", condition, plan.State, want)
		}
	}
}

// TestDryRunChangesNothing: a dry run names the objects that admission would refuse, and
// changes no key in etcd.
func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 60)
	w.flip()
	h := w.newWebhook(deny("w-0017"))
	w.awaitRefused("w-0017", denied)
	m := newMigrator(t, w.config, storageversion.Options{DryRun: true, PageObjects: 20})
	before := w.crd().ResourceVersion

	// With the default settle time: a run that writes nothing does not wait.
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	report, err := m.Run(t.Context(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.mustFailOne(report, godwit.Counts{Skipped: 59, Failed: 1}, "w-0017", h.name, "not on a Friday")
	w.mustBeStored("after a dry run", map[string]int{"v1": 60})
	w.mustHaveBeenWritten("after a dry run", 60, 1)
	if now := w.crd().ResourceVersion; now != before {
		t.Errorf("the CRD went from resourceVersion %s to %s in a dry run", before, now)
	}
}
