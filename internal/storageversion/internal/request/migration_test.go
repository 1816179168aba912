package request

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStorageVersionMigrationEnded(t *testing.T) {
	cases := map[string]struct {
		reason string
		status metav1.ConditionStatus
		kind   string
		want   bool
	}{
		"succeeded":     {"done", metav1.ConditionTrue, "Succeeded", true},
		"failed":        {"given up is ended too", metav1.ConditionTrue, "Failed", true},
		"running":       {"at work", metav1.ConditionTrue, "Running", false},
		"not succeeded": {"a condition that is False says the opposite", metav1.ConditionFalse, "Succeeded", false},
		"unknown":       {"only True is true", metav1.ConditionUnknown, "Failed", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s StorageVersionMigration
			s.Status.Conditions = []MigrationCondition{{Type: "Other", Status: metav1.ConditionTrue}, {Type: tc.kind, Status: tc.status}}
			if got := s.Ended(); got != tc.want {
				t.Errorf("ended = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
	if (StorageVersionMigration{}).Ended() {
		t.Error("a migration that has not begun has not ended")
	}
}

// The versions of the kind differ in the name of a condition's time.
func TestStorageVersionMigrationSucceeded(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		reason    string
		condition MigrationCondition
		want      time.Time
	}{
		"v1":       {"as in v1beta1", MigrationCondition{Type: "Succeeded", Status: metav1.ConditionTrue, LastTransitionTime: at}, at.Time},
		"v1alpha1": {"as of kube-storage-version-migrator", MigrationCondition{Type: "Succeeded", Status: metav1.ConditionTrue, LastUpdateTime: at}, at.Time},
		"failed":   {"it has ended, and not succeeded", MigrationCondition{Type: "Failed", Status: metav1.ConditionTrue, LastTransitionTime: at}, time.Time{}},
		"not yet":  {"False says the opposite", MigrationCondition{Type: "Succeeded", Status: metav1.ConditionFalse, LastTransitionTime: at}, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s StorageVersionMigration
			s.Status.Conditions = []MigrationCondition{{Type: "Running", Status: metav1.ConditionFalse, LastTransitionTime: at}, tc.condition}
			if got := s.Succeeded(); !got.Equal(tc.want) {
				t.Errorf("succeeded = %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}
