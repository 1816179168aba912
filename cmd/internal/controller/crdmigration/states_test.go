package crdmigration

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestStates(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme)
	for name, s := range map[string]status.Summary{
		"a.example.com": {State: status.StateReady, Reason: decision.ReasonSucceeded.Name},
		"b.example.com": {State: status.StateReconciling, Reason: decision.ReasonFailed.Name},
		"c.example.com": {State: status.StateStalled, Reason: decision.ReasonBlocked.Name},
		"d.example.com": {State: status.StateSuspended, Reason: ReasonSuspended.Name},
	} {
		m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Apply(m)
		cache.WithObjects(m)
	}
	cache.WithObjects(&v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: "e.example.com"}})
	registry := prometheus.NewPedanticRegistry()
	if err := NewStates(cache.Build()).Register(registry); err != nil {
		t.Fatal(err)
	}
	want := `# HELP godwit_crd_migration_state 1 for each CRDMigration. The label state is Ready, Reconciling or Stalled: the condition that is True; Suspended; or Unknown before the first status.
# TYPE godwit_crd_migration_state gauge
godwit_crd_migration_state{crd="a.example.com",reason="Succeeded",state="Ready"} 1
godwit_crd_migration_state{crd="b.example.com",reason="Failed",state="Reconciling"} 1
godwit_crd_migration_state{crd="c.example.com",reason="Blocked",state="Stalled"} 1
godwit_crd_migration_state{crd="d.example.com",reason="Suspended",state="Suspended"} 1
godwit_crd_migration_state{crd="e.example.com",reason="",state="Unknown"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
