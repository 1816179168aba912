package crdmigrator_test

import (
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestUndecodableObject: the API server can't decode one object in etcd. The run names the
// object if the server does, and does not change it.
func TestUndecodableObject(t *testing.T) {
	t.Parallel()
	const garbage = "\x00\x01 this was an object once"
	cases := map[string]struct {
		reason string
		run    func(w *widgets, m *storageversion.Migrator, spoil func()) (decision.Report, error)
		counts godwit.Counts
	}{
		"before the run": {
			reason: "the server lists no object",
			run: func(w *widgets, m *storageversion.Migrator, spoil func()) (decision.Report, error) {
				spoil()
				return w.migrate(w.t.Context(), m, nil)
			},
		},
		"mid-run": {
			reason: "the list succeeded before, and one write fails",
			run: func(w *widgets, m *storageversion.Migrator, spoil func()) (decision.Report, error) {
				run := w.pauseAfter(w.t.Context(), m, 10)
				spoil()
				return run.resume()
			},
			counts: godwit.Counts{Migrated: 49, Failed: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 50) // one page
			w.flip()
			_, config := w.user(w.migrationPermissions()...)
			key := w.key("w-0045")
			readable := w.values()[key]

			m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, Attempts: 2})
			report, err := tc.run(w, m, func() { w.put(key, garbage) })
			if report.Storage.Counts != tc.counts || report.Trimmed {
				t.Errorf("%s: %+v, trimmed %v, want %+v and not trimmed", tc.reason, report.Storage, report.Trimmed, tc.counts)
			}
			why := messages(report, err)
			if len(why) != 1 || !strings.Contains(why[0], "w-0045") || !strings.Contains(why[0], "not decodable") {
				t.Errorf("messages = %q, want one with the object and the cause", why)
			}
			if after := w.values()[key]; after != garbage {
				t.Errorf("etcd holds %q, want the unchanged garbage", after)
			}
			w.mustHaveStoredVersions("with an object that can't be read", "v1,v2")

			// A user who writes to etcd must drop the checkpoint: the object is newer
			// than the checkpoint, at any version.
			w.put(key, readable)
			w.annotate(nil)
			// With all attempts, because the server notices the change after a while.
			w.mustBeMigrated(w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: quickSettle})), 50)
		})
	}
}

// messages returns all error messages of a run.
func messages(report decision.Report, err error) []string {
	var words []string
	if err != nil {
		words = append(words, err.Error())
	}
	for _, f := range report.Storage.Failures {
		words = append(words, f.Namespace+"/"+f.Name+": "+f.Message)
	}
	return words
}

// put writes to etcd directly.
func (w *widgets) put(key string, value string) {
	w.t.Helper()
	if _, err := w.plane.Etcd().Put(w.t.Context(), key, value); err != nil {
		w.t.Fatal(err)
	}
}
