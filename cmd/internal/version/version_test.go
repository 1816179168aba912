package version

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// lease is as package serving labels it.
func lease(namespace, component, version, holder string, renewed time.Time) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "godwit-" + component, Labels: map[string]string{
			"app.kubernetes.io/part-of": "godwit", "app.kubernetes.io/component": component, "app.kubernetes.io/version": version,
		}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(holder), RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: new(int32(15)),
		},
	}
}

func TestManagers(t *testing.T) {
	tests := map[string]struct {
		reason string
		leases []coordinationv1.Lease
		want   []string
	}{
		"none": {
			reason: "no lease is no proof that no manager runs, and the message says so",
			want:   []string{"manager not found: no lease in any namespace has the labels of a manager: none has been elected there, or it runs with --leader-elect=false"},
		},
		"several": {
			reason: "managers are in the order of namespace and component",
			leases: []coordinationv1.Lease{
				lease("hub", "agent", "v0.2.0", "b", now), lease("godwit", "storage-version-migrator", "v0.1.0", "a", now), lease("godwit", "revision-upgrader", "v0.1.0", "a", now),
			},
			want: []string{
				"manager v0.1.0, revision-upgrader in namespace godwit", "manager v0.1.0, storage-version-migrator in namespace godwit", "manager v0.2.0, agent in namespace hub",
			},
		},
		"skew": {
			reason: "the manager's clock may be behind this machine's by a minute",
			leases: []coordinationv1.Lease{lease("godwit", "revision-upgrader", "v0.1.0", "a", now.Add(-75*time.Second))},
			want:   []string{"manager v0.1.0, revision-upgrader in namespace godwit"},
		},
		"expired": {
			reason: "a lease outlives its manager, and its labels tell the version of a manager that is gone",
			leases: []coordinationv1.Lease{lease("godwit", "revision-upgrader", "v0.1.0", "pod-1", now.Add(-76*time.Second))},
			want:   []string{"manager v0.1.0, revision-upgrader in namespace godwit, is not running: pod-1 renewed its lease last at 2026-05-04T11:58:44Z"},
		},
		"released": {
			reason: "a manager that ends in order has no holder in its lease",
			leases: []coordinationv1.Lease{lease("godwit", "revision-upgrader", "v0.1.0", "", now)},
			want:   []string{"manager v0.1.0, revision-upgrader in namespace godwit, is not running: it has ended, and released its lease"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range managers(tt.leases, "any namespace", now) {
				got = append(got, p.line())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
