package settle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
			if diff := cmp.Diff(tc.want, ServersOf([]coordinationv1.Lease{tc.lease}, now)); diff != "" {
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
