package crdmigrator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// bloat makes an object with managedFields as large as etcd takes it from us,
// which is too large for the API server: that names the key once more than
// alterStored does, and the key is long.
func (w *widgets) bloat(name string, entries ...metav1.ManagedFieldsEntry) {
	w.t.Helper()
	const maxRequest, frame = 1.5 * 1024 * 1024, 100 // etcd's default for --max-request-bytes; what is around key and value
	w.create(w.config, "v1", name)
	w.alterStored(name, func(o *unstructured.Unstructured) {
		o.SetManagedFields(entries)
		o.Object["blob"] = ""
		empty, err := json.Marshal(o.Object)
		if err != nil {
			w.t.Fatal(err)
		}
		o.Object["blob"] = strings.Repeat("x", maxRequest-2*len(w.key(name))-frame-len(empty))
	})
}

// TestObjectTooLargeForItsManagedFields: the API server drops managedFields without a
// message where an object is too large with them. It refuses an apply instead, which a
// retry does not make smaller.
func TestObjectTooLargeForItsManagedFields(t *testing.T) {
	t.Parallel()
	const others = 3
	long := "big-" + strings.Repeat("g", 240)
	cases := map[string]struct {
		reason  string
		write   decision.Write
		stale   bool
		naked   bool
		dropped bool
	}{
		"patch":            {reason: "the rewrite loses them", dropped: true},
		"status patch":     {reason: "a write of the status loses them", write: decision.WriteStatusPatch, dropped: true},
		"update":           {reason: "an update loses them", write: decision.WriteUpdate, dropped: true},
		"cleanup":          {reason: "a cleanup that leaves too much loses the rest", stale: true, dropped: true},
		"apply":            {reason: "an apply needs them, and is refused", write: decision.WriteApply},
		"status apply":     {reason: "as above", write: decision.WriteStatusApply},
		"no managedFields": {reason: "an object that is too large by itself is not migrated", naked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", others)
			var entries []metav1.ManagedFieldsEntry
			if tc.stale {
				entries = append(entries, w.entry("p", metav1.ManagedFieldsOperationApply, "v0", "{}"))
			}
			if !tc.naked {
				fields := `{"f:spec":{"f:` + strings.Repeat("f", 4000) + `":{}}}`
				entries = append(entries, w.entry("brush", metav1.ManagedFieldsOperationUpdate, "v1", fields))
			}
			w.bloat(long, entries...)
			w.flip()
			_, config := w.user(append(w.permissionsOf(tc.write), permission{"patch", w.group, w.plural})...)
			config, wire := tap(config)
			report := w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: tc.write}}))

			storage, fields, left := godwit.Counts{Migrated: others + 1}, godwit.Counts{Failed: 1}, 0
			if !tc.dropped {
				storage, fields, left = godwit.Counts{Migrated: others, Failed: 1}, godwit.Counts{}, len(entries)
			}
			if report.Storage.Counts != storage || report.ManagedFields.Counts != fields || report.Trimmed != tc.dropped {
				t.Errorf("%s: %+v, want %+v, %+v, trimmed %v", tc.reason, report, storage, fields, tc.dropped)
			}
			mustName(t, report.ManagedFields, fields, long, "dropped all managedFields")
			mustName(t, decision.Tally{Failures: report.Storage.Failures}, storage, long, "too large")
			if got := w.entries(long); len(got) != left {
				t.Errorf("managedFields = %q, want %d entries", got, left)
			}
			if n := wire.answered(http.StatusInternalServerError); n > 1 {
				t.Errorf("%d attempts for an object that is too large, want 1", n)
			}
			if tc.dropped {
				w.mustBeStored("after the run", map[string]int{"v2": others + 1})
			}
		})
	}
}
