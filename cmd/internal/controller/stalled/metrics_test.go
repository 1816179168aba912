package stalled_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/stalled"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// TestMetrics: two kinds share a metric, a kind without names is counted, and what is not stalled is not there.
func TestMetrics(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), hubapi.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for name, state := range map[string]status.State{"stuck.example.com": status.StateStalled, "busy.example.com": status.StateReconciling, "done.example.com": status.StateReady} {
		m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		status.Summary{State: state, Reason: "ObjectsFailed"}.Apply(m)
		objects = append(objects, m)
	}
	move := &hubapi.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "hubs", Name: "east"}}
	move.Status.Conditions = []metav1.Condition{{Type: hubapi.ConditionStalled, Status: metav1.ConditionTrue, Reason: hubapi.ReasonTimeout.Name}}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, move)...).Build()

	registry := prometheus.NewPedanticRegistry()
	many := func(context.Context) ([]stalled.Object, error) {
		return []stalled.Object{{Namespace: "shop", Reason: "Refused"}, {Namespace: "shop", Reason: "Refused"}, {Namespace: "lab", Reason: "Forbidden"}}, nil
	}
	for _, m := range []*stalled.Metrics{
		stalled.NewMetrics("CRDMigration", stalled.Of(cache, &v1alpha1.CRDMigrationList{})),
		stalled.NewMetrics("ManagedClusterMigration", stalled.Of(cache, &hubapi.ManagedClusterMigrationList{})),
		stalled.NewMetrics("ControllerRevisionUpgrade", many),
	} {
		if err := m.Register(registry); err != nil {
			t.Fatal(err)
		}
	}
	want := `# HELP godwit_stalled_objects Objects whose condition Stalled is True: user action is required. The label name is empty for kinds with very many objects.
# TYPE godwit_stalled_objects gauge
godwit_stalled_objects{kind="CRDMigration",name="stuck.example.com",object_namespace="",reason="ObjectsFailed"} 1
godwit_stalled_objects{kind="ControllerRevisionUpgrade",name="",object_namespace="lab",reason="Forbidden"} 1
godwit_stalled_objects{kind="ControllerRevisionUpgrade",name="",object_namespace="shop",reason="Refused"} 2
godwit_stalled_objects{kind="ManagedClusterMigration",name="east",object_namespace="hubs",reason="Timeout"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
}

// TestUnreadableIsNotZero: a cache that does not answer fails the scrape.
func TestUnreadableIsNotZero(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	broken := stalled.NewMetrics("CRDMigration", func(context.Context) ([]stalled.Object, error) { return nil, errors.New("the cache is not started") })
	if err := broken.Register(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "the cache is not started") {
		t.Errorf("it gathered with %v, want the error of the cache", err)
	}
}
