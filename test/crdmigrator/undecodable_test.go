package crdmigrator_test

import (
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestUndecodableObject: what etcd holds of one object can't be read. The run
// says which, as far as the server does, and leaves it to a person what becomes
// of it.
func TestUndecodableObject(t *testing.T) {
	t.Parallel()
	const garbage = "\x00\x01 this was an object once"
	cases := map[string]struct {
		reason string
		run    func(w *widgets, m *crdmigrator.Migrator, spoil func()) (crdmigrator.Report, error)
		counts godwit.Counts
	}{
		"before the run": {
			reason: "the server lists none of them",
			run: func(w *widgets, m *crdmigrator.Migrator, spoil func()) (crdmigrator.Report, error) {
				spoil()
				return w.migrate(w.t.Context(), m, nil)
			},
		},
		"mid-run": {
			reason: "the list was there, and one write fails",
			run: func(w *widgets, m *crdmigrator.Migrator, spoil func()) (crdmigrator.Report, error) {
				run := w.pauseAfter(w.t.Context(), m, 30)
				spoil()
				return run.goOn()
			},
			counts: godwit.Counts{Migrated: 99, Failed: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 100)
			w.flip()
			_, config := w.user(w.migrationRights()...)
			key := w.key("w-0095")
			readable := w.values()[key]

			m := newMigrator(t, config, crdmigrator.Options{Policy: quickSettle, Attempts: 2})
			report, err := tc.run(w, m, func() { w.put(key, garbage) })
			if report.Storage.Counts != tc.counts || report.Trimmed {
				t.Errorf("%s: %+v, trimmed %v, want %+v and not trimmed", tc.reason, report.Storage, report.Trimmed, tc.counts)
			}
			why := whatIsSaid(report, err)
			if len(why) != 1 || !strings.Contains(why[0], "w-0095") || !strings.Contains(why[0], "not decodable") {
				t.Errorf("the run says %q, want it to name the object and what is wrong with it", why)
			}
			if after := w.values()[key]; after != garbage {
				t.Errorf("etcd holds %q, want the garbage as it was", after)
			}
			w.mustHaveStoredVersions("with an object that can't be read", "v1,v2")

			// Whoever writes to etcd by hand drops the evidence: what they write is
			// newer than the checkpoint, at whatever version it is.
			w.put(key, readable)
			w.annotate(nil)
			// With all attempts, since the server takes its time to find out.
			w.mustBeMigrated(w.mustMigrate(newMigrator(t, config, crdmigrator.Options{Policy: quickSettle})), 100)
		})
	}
}

// whatIsSaid are all words of a run on what went wrong.
func whatIsSaid(report crdmigrator.Report, err error) []string {
	var words []string
	if err != nil {
		words = append(words, err.Error())
	}
	for _, f := range report.Storage.Failures {
		words = append(words, f.Namespace+"/"+f.Name+": "+f.Reason)
	}
	return words
}

// put writes to etcd behind the API server's back.
func (w *widgets) put(key string, value string) {
	w.t.Helper()
	if _, err := w.plane.Etcd().Put(w.t.Context(), key, value); err != nil {
		w.t.Fatal(err)
	}
}
