package revisionupgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// TestMetrics: the metrics count the objects that exist, and no deleted one.
func TestMetrics(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	trigger.Status.LastScanTime = &metav1.Time{Time: time.Unix(1000, 0)}
	trigger.Status.VersionCounts = []v1alpha1.RevisionVersionCount{{Version: "v1alpha1", Form: "Object", Count: 8}}
	unseen := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "unseen"}}
	objects := []client.Object{trigger, unseen}
	for name, phase := range map[string]v1alpha1.UpgradePhase{"a": "Retained", "b": "Retained", "c": "", "d": "Failed"} {
		one := &v1alpha1.ControllerRevisionUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		one.Status.Phase = phase
		objects = append(objects, one)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	registry := prometheus.NewPedanticRegistry()
	if err := NewMetrics(cache).Register(registry); err != nil {
		t.Fatal(err)
	}
	want := `# HELP godwit_revision_last_scan_timestamp_seconds When a trigger last scanned for revisions.
# TYPE godwit_revision_last_scan_timestamp_seconds gauge
godwit_revision_last_scan_timestamp_seconds{trigger="all"} 1000
# HELP godwit_revision_upgrades ControllerRevisionUpgrades, by phase.
# TYPE godwit_revision_upgrades gauge
godwit_revision_upgrades{phase="Failed"} 1
godwit_revision_upgrades{phase="NotStarted"} 1
godwit_revision_upgrades{phase="Retained"} 2
# HELP godwit_revisions Objects of the family in ControllerRevisions of the whole cluster, by version and form, as the last scan of a trigger found them.
# TYPE godwit_revisions gauge
godwit_revisions{form="Object",trigger="all",version="v1alpha1"} 8
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
	for _, o := range objects {
		if err := cache.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("%d series outlive their objects, %v", n, err)
	}
}
