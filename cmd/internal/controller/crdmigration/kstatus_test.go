package crdmigration

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// kstatusOf is how clients of kstatus, such as Flux, read a migration.
func kstatusOf(t *testing.T, m *v1alpha1.CRDMigration) kstatus.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	result, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// kstatusWhen a condition is True; a suspended migration has none.
var kstatusWhen = map[string]kstatus.Status{
	v1alpha1.ConditionReady:       kstatus.CurrentStatus,
	v1alpha1.ConditionReconciling: kstatus.InProgressStatus,
	v1alpha1.ConditionStalled:     kstatus.FailedStatus,
	"":                            kstatus.InProgressStatus,
}

// planAt is a plan for a generation of a CRD.
func planAt(generation int64) decision.Plan {
	return decision.Plan{UID: "a", Generation: generation}
}

// TestKstatusOfWhatIsNotSettled: whatever the conditions said before.
func TestKstatusOfWhatIsNotSettled(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*v1alpha1.CRDMigration)
		want   kstatus.Status
	}{
		"nothing has changed":          {func(*v1alpha1.CRDMigration) {}, kstatus.CurrentStatus},
		"the spec has changed since":   {func(m *v1alpha1.CRDMigration) { m.Generation++ }, kstatus.InProgressStatus},
		"it is being deleted":          {func(m *v1alpha1.CRDMigration) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, kstatus.TerminatingStatus},
		"the CRD has another version":  {func(m *v1alpha1.CRDMigration) { describe(m, planAt(m.Status.CRDGeneration+1)) }, kstatus.InProgressStatus},
		"objects were found after all": {func(m *v1alpha1.CRDMigration) { describe(m, planAt(m.Status.CRDGeneration)) }, kstatus.InProgressStatus},
	} {
		m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		describe(m, planAt(3))
		outcome{Summary: status.Summary{State: status.StateReady, Reason: decision.ReasonSucceeded.Name, Message: "done"}}.apply(m)
		test.change(m)
		if got := kstatusOf(t, m); got != test.want {
			t.Errorf("%s: kstatus says %s, want %s", reason, got, test.want)
		}
	}
}
