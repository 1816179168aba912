package crdmigration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

func TestSpecsInheritFromTheConfiguration(t *testing.T) {
	defaults := v1alpha1.CRDMigrationSpec{
		Phases: []v1alpha1.Phase{"CleanupManagedFields"}, Write: "Update", Settle: &metav1.Duration{Duration: time.Minute},
		Trim: new(false), MaxInFlight: new(int32(3)), MaxWritesPerSecond: new(int32(5)),
	}
	if diff := cmp.Diff(defaults, withDefaults(v1alpha1.CRDMigrationSpec{}, defaults)); diff != "" {
		t.Errorf("an empty spec (-configuration +got):\n%s", diff)
	}
	full := v1alpha1.CRDMigrationSpec{
		Suspend: true, Phases: []v1alpha1.Phase{"StorageVersionMigration"}, Write: "Apply", Settle: &metav1.Duration{},
		Trim: new(true), MaxInFlight: new(int32(1)), MaxWritesPerSecond: new(int32(1)),
	}
	if diff := cmp.Diff(full, withDefaults(full, defaults)); diff != "" {
		t.Errorf("a full spec (-spec +got):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	if o := options(v1alpha1.CRDMigrationSpec{}); o.Settle != 0 || o.NoTrim || len(o.SkipPhases) != 0 || !o.SettleFromSight {
		t.Errorf("an empty spec: %+v", o.Policy)
	}
	o := options(v1alpha1.CRDMigrationSpec{
		Settle: &metav1.Duration{}, Trim: new(false), Write: "StatusPatch", Phases: []v1alpha1.Phase{"StorageVersionMigration"},
	})
	if o.Settle >= 0 {
		t.Error("settle: 0s means none, not the default")
	}
	if !o.NoTrim || o.Write != decision.WriteStatusPatch || len(o.SkipPhases) != 1 || o.SkipPhases[0] != decision.CleanupManagedFieldsPhase {
		t.Errorf("got %+v", o)
	}
}

func TestPagesAreSmallWhereWritesHaveARate(t *testing.T) {
	for name, test := range map[string]struct {
		all, own float64
		want     int64
	}{
		"no rate":                   {0, 0, walk.DefaultPageObjects},
		"a rate of all migrations":  {20, 0, smallPage},
		"a rate of this one":        {0, 5, smallPage},
		"a rate of both migrations": {20, 5, smallPage},
	} {
		if got := pageObjects(test.all, walk.Limits{MaxWritesPerSecond: test.own}); got != test.want {
			t.Errorf("%s: pages of %d objects, want %d", name, got, test.want)
		}
	}
}
