package hub_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
	simulation "github.com/godwit-dev/godwit/test/hub"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// TestDirectLosesTarget: the API server of the target hub stops for ever in the middle of a migration, and a user ends the migration without it.
// What the target has not proven to have is back at the source hub. The source hub keeps what it has of the others, and the status names them.
//
// Matrix: H128.
func TestDirectLosesTarget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// at reports whether the target hub is lost now.
		at func(m *api.ManagedClusterMigration) bool
		// unreachable is the number of clusters, the last ones, that can't reach the target hub.
		unreachable int
		forgotten   int32
		want        api.Phase
	}{
		"InDeploying": {at: func(m *api.ManagedClusterMigration) bool { return m.Status.Phase == api.PhaseDeploying }, want: api.PhaseFailed},
		"InRegistering": {
			at: func(m *api.ManagedClusterMigration) bool {
				return slices.ContainsFunc(m.Status.Places, func(p api.PlaceCount) bool { return p.Place == "AwaitRegistration" })
			},
			unreachable: 2, want: api.PhaseFailed,
		},
		"AfterTheSwitchOfOne": {
			at:          func(m *api.ManagedClusterMigration) bool { return m.Status.Counts != nil && m.Status.Counts.Moved == 1 },
			unreachable: 1, forgotten: 1, want: api.PhaseCompleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane, err := controlplane.Start(t.Context(), controlplane.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := plane.Stop(); err != nil {
					t.Error(err)
				}
			})
			if err := simulation.InstallCRDs(t.Context(), plane.Config()); err != nil {
				t.Fatal(err)
			}
			n := 2
			d := newDirectMoveTo(t, plane.Config(), n, func(k *klusterlet.Klusterlet) {
				k.Unreachable = n <= test.unreachable
				n--
			})
			through := &fault.Transport{}
			through.Run(t.Context(), func(ctx context.Context) {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				through.After = func(*http.Request) {
					m := &api.ManagedClusterMigration{}
					if err := d.store.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(d.migration), m); err == nil && test.at(m) {
						stop()
					}
				}
				_ = d.run(ctx, "the first", through)
			})
			if m := d.read(); !test.at(m) {
				t.Fatalf("the process was not stopped in time: %+v", m.Status)
			}
			if err := plane.StopAPIServer(); err != nil {
				t.Fatal(err)
			}
			for _, k := range d.klusterlets {
				k.LoseTarget()
			}
			if err := d.runWithoutTarget(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.mustHaveLostTarget(test.want, test.forgotten)
		})
	}
}

// runWithoutTarget ends the migration in a process that has the source hub alone.
func (d *directMove) runWithoutTarget(ctx context.Context) error {
	o := d.options("the second", &fault.Transport{})
	o.Target.Client, o.Target.Config = nil, nil
	return d.carryOut(ctx, o)
}

// mustHaveLostTarget fails the test unless the migration has ended without its target hub.
func (d *directMove) mustHaveLostTarget(phase api.Phase, forgotten int32) {
	d.t.Helper()
	m := d.read()
	counts := m.Status.Counts
	if m.Status.Phase != phase || m.Status.CompletionTime == nil || counts.Forgotten != forgotten || counts.Restored != counts.Total-forgotten {
		d.t.Fatalf("the migration is in %s with %+v, want %s with %d forgotten: %+v", m.Status.Phase, counts, phase, forgotten, m.Status.Conditions)
	}
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
	if c == nil || c.Reason != api.ReasonLeftBehind.Name || !strings.Contains(c.Message, "left on the target hub the permissions of the bootstrap account") {
		d.t.Errorf("condition %+v does not say what is left", c)
	}
	named := map[string]string{}
	for _, f := range m.Status.Failures {
		named[f.Cluster] = f.Message
	}
	for i, s := range d.sites {
		want := "left on the target hub the objects that the migration has created for the cluster"
		if int32(i) < forgotten { //nolint:gosec // two clusters
			want = "left on the source hub all objects of the cluster; on the target hub the annotations"
			if left := s.objects(); len(left) < len(d.before[s.name]) {
				d.t.Errorf("the source hub has %d objects of %s, want %d", len(left), s.name, len(d.before[s.name]))
			}
		} else {
			if diff := cmp.Diff(asUserSees(d.before[s.name]), asUserSees(s.objects())); diff != "" {
				d.t.Errorf("%s on the source hub (-before +after):\n%s", s.name, diff)
			}
			if d.klusterlets[i].Hub() != d.source.c {
				d.t.Errorf("the agent of %s is not at the source hub", s.name)
			}
		}
		if !strings.HasPrefix(named[s.name], want) {
			d.t.Errorf("%s has the message %q, want %q", s.name, named[s.name], want)
		}
	}
	secrets := &corev1.SecretList{}
	if err := d.source.c.List(d.t.Context(), secrets, client.InNamespace(d.namespace), client.HasLabels{"godwit.dev/hub-migration"}); err != nil || len(secrets.Items) > 0 {
		d.t.Errorf("the source hub has %d commands of the migration, %v", len(secrets.Items), err)
	}
}
