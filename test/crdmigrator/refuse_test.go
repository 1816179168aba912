package crdmigrator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// others are the StorageVersionMigrations of v1, which no controller of the test carries out.
func (w *widgets) others() dynamic.ResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: inTreeGroup, Version: "v1", Resource: "storageversionmigrations"})
}

// createOther creates a StorageVersionMigration of a resource of the widgets' group.
func (w *widgets) createOther(name, resource string) {
	w.t.Helper()
	_, err := w.others().Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": inTreeGroup + "/v1", "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name + "." + w.group},
		"spec":     map[string]any{"resource": map[string]any{"group": w.group, "resource": resource}},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// setOther gives a StorageVersionMigration a condition.
func (w *widgets) setOther(name, condition string) {
	w.t.Helper()
	s, err := w.others().Get(w.t.Context(), name+"."+w.group, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Object["status"] = map[string]any{"resourceVersion": "1", "conditions": []any{map[string]any{
		"type": condition, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
	}}}
	if _, err := w.others().UpdateStatus(w.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
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
	w.createOther("ours", w.plural)
	w.createOther("other", "gadgets") // a migration of another resource does not matter

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonMigrationInProgress, 1)
	if b := plan.Blockers[0]; !strings.Contains(b.Message, "storageversionmigrations.storagemigration.k8s.io/ours."+w.group) || strings.Contains(b.Message, "other.") {
		t.Errorf("blocker = %q, want it to name only the migration of this resource", b.Message)
	}

	for _, condition := range []string{"Running", "Succeeded"} {
		w.setOther("ours", condition)
		if plan, err = m.Plan(t.Context(), w.name); err != nil {
			t.Fatal(err)
		}
		if want := map[string]decision.State{"Running": decision.Blocked, "Succeeded": decision.Ready}[condition]; plan.State != want {
			t.Errorf("with the other migration %s the plan is %s, want %s", condition, plan.State, want)
		}
	}
}

// TestOtherMigratorThatBeginsAfterThePlan: a StorageVersionMigration of the resource is created while the API servers settle. The run
// writes nothing, and returns what a plan with it says.
func TestOtherMigratorThatBeginsAfterThePlan(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	m := newMigrator(t, w.config, storageversion.Options{Policy: decision.Policy{Settle: 2 * time.Second}})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Ready {
		t.Fatalf("the plan is %s, want Ready", plan.State)
	}
	w.createOther("ours", w.plural)
	before := w.crd().ResourceVersion
	var blocked *decision.BlockedError
	await(t, "the API servers to settle", func() bool {
		_, err = m.Run(t.Context(), plan, nil)
		return !errors.As(err, new(*decision.NotSettledError))
	})
	if !errors.As(err, &blocked) {
		t.Fatalf("run: %v, want BlockedError", err)
	}
	if plan, err = m.Plan(t.Context(), w.name); err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonMigrationInProgress, 1)
	if diff := cmp.Diff(plan.Blockers, blocked.Blockers, cmp.Comparer(func(a, b *godwit.Reason) bool { return a == b })); diff != "" {
		t.Errorf("the run does not say what the plan says (-plan +run):\n%s", diff)
	}
	w.mustHaveBeenWritten("while the other migrator is at work", 20, 1)
	if after := w.crd().ResourceVersion; after != before {
		t.Error("the run has written the CRD, want no write before the other migrator ends")
	}

	w.setOther("ours", "Succeeded")
	w.mustBeMigrated(w.mustMigrate(m), 20)
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
