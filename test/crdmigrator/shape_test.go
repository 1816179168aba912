package crdmigrator_test

import (
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// TestShapesOfResources migrates resources with irregular names, and cluster-scoped ones.
func TestShapesOfResources(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		plural, kind  string
		clusterScoped bool
	}{
		"cluster-scoped":           {plural: "widgets", kind: "Widget", clusterScoped: true},
		"irregular plural":         {plural: "oxen", kind: "Ox"},
		"plural like the singular": {plural: "sheep", kind: "Sheep"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &widgets{t: t, plane: shared, group: groupOf(t), plural: tc.plural, kind: tc.kind, clusterScoped: tc.clusterScoped}
			w.install()
			w.fill("v1", 60)
			w.flip()
			m := w.quickMigrator(storageversion.Options{PageObjects: 20})
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Objects == nil || *plan.Objects != 60 {
				t.Errorf("plan counts %v objects, want 60", plan.Objects)
			}
			report := w.mustMigrate(m)
			if want := (godwit.Counts{Migrated: 60}); report.Storage.Counts != want {
				t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
			}
			w.mustBeMigrated(report, 60)
			w.mustHaveBeenWritten("after the run", 60, 2)
		})
	}
}

// TestSameKindInTwoGroups: two CRDs that differ only in their group are two migrations.
func TestSameKindInTwoGroups(t *testing.T) {
	t.Parallel()
	first := newWidgets(t, shared)
	second := &widgets{t: t, plane: shared, group: "second-" + first.group, plural: first.plural, kind: first.kind}
	second.install()
	for _, w := range []*widgets{first, second} {
		w.fill("v1", 30)
		w.flip()
	}

	// One migrator for both, as in an operator.
	user, config := first.user(first.migrationPermissions()...)
	first.grant(config, user, second.migrationPermissions()...)
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle})
	first.mustBeMigrated(first.mustMigrate(m), 30)
	second.mustHaveBeenWritten("while its namesake is migrated", 30, 1)
	second.mustHaveStoredVersions("while its namesake is migrated", "v1,v2")
	second.mustBeMigrated(second.mustMigrate(m), 30)
	first.mustHaveBeenWritten("while its namesake is migrated", 30, 2)
}
