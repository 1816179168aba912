package crdmigrator_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// permissionsOf returns the permissions that one write needs.
func (w *widgets) permissionsOf(write decision.Write) []permission {
	permissions := slices.Concat(w.migrationPermissions()[:2], w.migrationPermissions()[3:]) // without patch on the objects
	switch write {
	case decision.WriteUpdate:
		return append(permissions, permission{"get", w.group, w.plural}, permission{"update", w.group, w.plural})
	case decision.WriteStatusPatch, decision.WriteStatusApply:
		return append(permissions, permission{"patch", w.group, w.plural + "/status"})
	}
	return append(permissions, permission{"patch", w.group, w.plural})
}

// TestEveryWriteMigrates: with every write, and exactly the permissions that it needs, the
// objects end at the new version and keep their content.
func TestEveryWriteMigrates(t *testing.T) {
	t.Parallel()
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 30)
			before, generations := w.specs("v1"), w.generations("v1")
			w.flip()
			_, config := w.user(w.permissionsOf(write)...)
			m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: write}})
			report := w.mustMigrate(m)
			if want := (godwit.Counts{Migrated: 30}); report.Storage.Counts != want || !report.Trimmed {
				t.Errorf("run: %+v, trimmed %v, want %+v and trimmed", report.Storage, report.Trimmed, want)
			}
			w.mustBeStored("after the run", map[string]int{"v2": 30})
			w.mustBeWrittenOnce()
			if diff := cmp.Diff(before, w.specs("v2")); diff != "" {
				t.Errorf("the write changed the objects (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(generations, w.generations("v2")); diff != "" {
				t.Errorf("the write changed generations, by which controllers tell a change of the spec (-before +after):\n%s", diff)
			}
		})
	}
}

// generations returns metadata.generation of the objects.
func (w *widgets) generations(version string) map[string]int64 {
	w.t.Helper()
	list, err := w.at(version).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]int64{}
	for _, o := range list.Items {
		all[o.GetName()] = o.GetGeneration()
	}
	return all
}

// specs returns the specs of the objects, including fields that no schema has.
func (w *widgets) specs(version string) map[string]any {
	w.t.Helper()
	list, err := w.at(version).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	specs := map[string]any{}
	for _, o := range list.Items {
		specs[o.GetName()] = o.Object["spec"]
	}
	return specs
}

// TestWriteMeetsAWriteOfAnotherClient: another client writes an object between the read and
// the write of an update, or between the list and the write of an apply.
func TestWriteMeetsAWriteOfAnotherClient(t *testing.T) {
	t.Parallel()
	cases := map[decision.Write]struct {
		reason  string
		want    godwit.Counts
		trimmed bool
	}{
		decision.WriteUpdate: {
			reason: "an update leaves the object to the next pass, and does not trim the CRD",
			want:   godwit.Counts{Migrated: 4, Deferred: 1},
		},
		decision.WriteApply: {
			reason:  "the live object proves that the other writer stored it at v2",
			want:    godwit.Counts{Migrated: 4, Skipped: 1},
			trimmed: true,
		},
	}
	for write, tc := range cases {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			_, config := w.user(w.permissionsOf(write)...)
			config, wire := tap(config)
			h := wire.haltBefore(t, func(r *http.Request) bool {
				return (r.Method == http.MethodPut || r.Method == http.MethodPatch) && strings.HasSuffix(r.URL.Path, "/w-0003")
			})
			m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: write}})
			run := w.pauseAt(t.Context(), m, h, nil)
			red := []byte(`{"spec":{"color":"red"}}`)
			if _, err := w.at("v2").Patch(t.Context(), "w-0003", types.MergePatchType, red, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			report, err := run.resume()
			if err != nil {
				t.Fatal(err)
			}
			if report.Storage.Counts != tc.want || report.Trimmed != tc.trimmed {
				t.Errorf("%s: %+v, trimmed %v", tc.reason, report.Storage, report.Trimmed)
			}
			if spec, ok := w.specs("v2")["w-0003"].(map[string]any); !ok || spec["color"] != "red" {
				t.Errorf("w-0003 is %v: the other writer's color was lost", spec)
			}
			if report := w.mustMigrate(m); !tc.trimmed && (report.Storage.Counts.Skipped != 5 || !report.Trimmed) {
				t.Errorf("the next pass: %+v, want all done and trimmed", report)
			}
		})
	}
}

// TestStatusWritePassesWebhooksOfTheObject: the API server does not call a webhook of the
// object for its status.
func TestStatusWritePassesWebhooksOfTheObject(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.newWebhook(func(string) string { return "frozen" })
	w.awaitRefused("w-0000", denied)
	_, config := w.user(w.permissionsOf(decision.WriteStatusPatch)...)
	m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: decision.WriteStatusPatch}})
	if report := w.mustMigrate(m); report.Storage.Counts.Migrated != 10 || !report.Trimmed {
		t.Errorf("run: %+v, want 10 migrated and trimmed", report)
	}
}

// TestStatusWriteNeedsTheSubresource: the plan is Blocked, because a 404 on /status would
// look like a deleted object.
func TestStatusWriteNeedsTheSubresource(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	bare := version("v2", true, true)
	bare.Subresources = nil
	w.setVersions(version("v1", true, false), bare)
	m := newMigrator(t, w.config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: decision.WriteStatusPatch}})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Blocked || plan.Blockers[0].Reason != decision.ReasonStatusSubresourceMissing {
		t.Errorf("plan: %s %+v, want Blocked, StatusSubresourceMissing", plan.State, plan.Blockers)
	}
	w.mustHaveStoredVersions("a refused plan", "v1,v2")
}
