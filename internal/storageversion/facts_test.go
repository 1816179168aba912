package storageversion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

func TestServersOf(t *testing.T) {
	now := flip
	lease := func(name string, renewed *time.Time, seconds *int32) coordinationv1.Lease {
		l := coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": "host-" + name}},
			Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: seconds},
		}
		if renewed != nil {
			l.Spec.RenewTime = &metav1.MicroTime{Time: *renewed}
		}
		return l
	}
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	hour := ptr.To[int32](3600)

	cases := map[string]struct {
		reason string
		lease  coordinationv1.Lease
		want   []Server
	}{
		"alive":         {"renewed a moment ago", lease("a", ago(time.Second), hour), []Server{{Name: "a", Host: "host-a", Renewed: *ago(time.Second)}}},
		"stale":         {"a server that hangs keeps its lease, and stays known", lease("a", ago(59*time.Minute), hour), []Server{{Name: "a", Host: "host-a", Renewed: *ago(59 * time.Minute)}}},
		"last moment":   {"a lease that ends now is still valid", lease("a", ago(time.Hour), hour), []Server{{Name: "a", Host: "host-a", Renewed: *ago(time.Hour)}}},
		"ended":         {"past its end the server is given up", lease("a", ago(time.Hour+time.Nanosecond), hour), nil},
		"ahead":         {"our time is a lower bound, a renewal may lie after it", lease("a", ago(-2*time.Second), hour), []Server{{Name: "a", Host: "host-a", Renewed: *ago(-2 * time.Second)}}},
		"never renewed": {"nothing to compare", lease("a", nil, hour), nil},
		"no duration":   {"no end either", lease("a", ago(0), nil), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, settle.ServersOf([]coordinationv1.Lease{tc.lease}, now)); diff != "" {
				t.Errorf("%s\nservers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestServerString(t *testing.T) {
	if got := (Server{Name: "apiserver-x"}).String(); got != "apiserver-x" {
		t.Errorf("without a host: %q", got)
	}
	if got := (Server{Name: "apiserver-x", Host: "cp-1"}).String(); got != "apiserver-x (host cp-1)" {
		t.Errorf("with a host: %q", got)
	}
}

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
			var s request.StorageVersionMigration
			s.Status.Conditions = []request.MigrationCondition{{Type: "Other", Status: metav1.ConditionTrue}, {Type: tc.kind, Status: tc.status}}
			if got := s.Ended(); got != tc.want {
				t.Errorf("ended = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
	if (request.StorageVersionMigration{}).Ended() {
		t.Error("a migration that has not begun has not ended")
	}
}

// The versions of the kind differ in the name of a condition's time.
func TestStorageVersionMigrationSucceeded(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		reason    string
		condition request.MigrationCondition
		want      time.Time
	}{
		"v1":       {"as in v1beta1", request.MigrationCondition{Type: "Succeeded", Status: metav1.ConditionTrue, LastTransitionTime: at}, at.Time},
		"v1alpha1": {"as of kube-storage-version-migrator", request.MigrationCondition{Type: "Succeeded", Status: metav1.ConditionTrue, LastUpdateTime: at}, at.Time},
		"failed":   {"it has ended, and not succeeded", request.MigrationCondition{Type: "Failed", Status: metav1.ConditionTrue, LastTransitionTime: at}, time.Time{}},
		"not yet":  {"False says the opposite", request.MigrationCondition{Type: "Succeeded", Status: metav1.ConditionFalse, LastTransitionTime: at}, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s request.StorageVersionMigration
			s.Status.Conditions = []request.MigrationCondition{{Type: "Running", Status: metav1.ConditionFalse, LastTransitionTime: at}, tc.condition}
			if got := s.Succeeded(); !got.Equal(tc.want) {
				t.Errorf("succeeded = %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}
