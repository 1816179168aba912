package hub_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/howto"
	simulation "github.com/godwit-dev/godwit/test/hub"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/program"
)

// TestDirectLosesTarget: the API server of the target hub stops for ever in the middle of a migration, and a user ends the migration without it.
// What still knows the source hub is back there. The source hub keeps what it has of the others, and the status names them.
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
			at:          isAt("AwaitRegistration"),
			unreachable: 2, want: api.PhaseFailed,
		},
		"AfterTheSwitchOfOne": {
			at:          func(m *api.ManagedClusterMigration) bool { return m.Status.Counts != nil && m.Status.Counts.Moved == 1 },
			unreachable: 1, want: api.PhaseFailed,
		},
		"AfterTheEndOfOneAtTheTarget": {
			at:          isAt("DeleteMoved"),
			unreachable: 1, forgotten: 1, want: api.PhaseCompleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane := startHub(t)
			d := beginTo(t, plane, types.NamespacedName{Namespace: "direct-" + newName(), Name: "move"}, test.unreachable, test.at)
			loseTarget(t, plane, d)
			if err := d.runWithoutTarget(t.Context(), &fault.Transport{}); err != nil {
				t.Fatal(err)
			}
			d.mustHaveLostTarget(test.want, test.forgotten)
		})
	}
}

// TestDirectFindsTarget: the target hub answers again after a process has begun to end a migration without it. A process with both hubs has the target
// do the rest: nothing is left.
//
// Matrix: H128.
func TestDirectFindsTarget(t *testing.T) {
	t.Parallel()
	plane := startHub(t)
	d := beginTo(t, plane, types.NamespacedName{Namespace: "direct-" + newName(), Name: "move"}, 2, isAt("AwaitRegistration"))
	if err := plane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	d.runUntil(func(m *api.ManagedClusterMigration) bool {
		return m.Status.Progress.TargetLost && m.Status.CompletionTime == nil
	}, d.runWithoutTarget)
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.run(t.Context(), "the third", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	m := d.read()
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
	if m.Status.Phase != api.PhaseFailed || m.Status.Counts.Restored != 2 || len(m.Status.Failures) > 0 || c == nil || c.Reason != api.ReasonAborted.Name {
		t.Errorf("the migration is in %s with %+v, failures %+v and condition %+v", m.Status.Phase, m.Status.Counts, m.Status.Failures, c)
	}
	for _, s := range d.sites {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		if err := d.target.c.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
			t.Errorf("the target hub has ManagedCluster %s: %v", s.name, err)
		}
	}
}

// startHub starts a hub that a test may stop.
func startHub(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	plane := controlplane.Options{}.StartFor(t)
	if err := simulation.InstallCRDs(t.Context(), plane.Config()); err != nil {
		t.Fatal(err)
	}
	return plane
}

// beginTo carries out a migration of two clusters, of which the last ones can't reach the target hub, to a moment.
func beginTo(t *testing.T, plane *controlplane.ControlPlane, key types.NamespacedName, unreachable int, at func(*api.ManagedClusterMigration) bool) *directMove {
	t.Helper()
	n := 2
	d := newDirectMoveTo(t, plane.Config(), key, n, func(k *klusterlet.Klusterlet) {
		k.Unreachable = n <= unreachable
		n--
	})
	d.runUntil(at, func(ctx context.Context, through *fault.Transport) error { return d.run(ctx, "the first", through) })
	return d
}

// runUntil has a process carry out the migration to a moment.
func (d *directMove) runUntil(at func(*api.ManagedClusterMigration) bool, run func(context.Context, *fault.Transport) error) {
	d.t.Helper()
	through := &fault.Transport{}
	through.Run(d.t.Context(), func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		through.After = func(*http.Request) {
			m := &api.ManagedClusterMigration{}
			if err := d.store.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(d.migration), m); err == nil && at(m) {
				stop()
			}
		}
		_ = run(ctx, through)
	})
	if m := d.read(); !at(m) {
		d.t.Fatalf("the process was not stopped in time: %+v", m.Status)
	}
}

// loseTarget stops the target hub for ever.
func loseTarget(t *testing.T, plane *controlplane.ControlPlane, moves ...*directMove) {
	t.Helper()
	if err := plane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	for _, d := range moves {
		for _, k := range d.klusterlets {
			k.LoseTarget()
		}
	}
}

// TestLostTargetGuide runs the guide for a target hub that is lost, for a migration whose clusters come back, and for one with a cluster that
// is offline.
//
// Matrix: H129.
func TestLostTargetGuide(t *testing.T) {
	t.Parallel()
	dir, plane := t.TempDir(), startHub(t)
	if _, err := program.Godwit(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	one := beginTo(t, plane, types.NamespacedName{Namespace: direct.Namespace, Name: "lost-" + newName()}, 1, isAt("FinishMoved"))
	other := beginTo(t, plane, types.NamespacedName{Namespace: direct.Namespace, Name: "hangs-" + newName()}, 2, isAt("AwaitRegistration"))
	other.klusterlets[1].Silence()
	contexts := filepath.Join(dir, "kubeconfig")
	if err := controlplane.WriteContexts(contexts, "", map[string]*rest.Config{"old": shared.Config(), "new": plane.Config()}); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "KUBECONFIG="+contexts, "HOME="+t.TempDir(), "PATH="+dir+":"+os.Getenv("PATH"))
	godwit := func(arguments ...string) string {
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "godwit"), arguments...)
		c.Env = env
		out, _ := c.CombinedOutput() // the text says whether it is refused
		return string(out)
	}
	if out := godwit("cluster", "rollback", one.migration.Name, "--from-context=old", "--yes"); !strings.Contains(out, "answers at "+plane.Config().Host+" from here, so it is not lost: nothing was written") {
		t.Errorf("a target hub that answers is given up: %s", out)
	}
	loseTarget(t, plane, one, other)
	if out := godwit("cluster", "rollback", one.migration.Name, "--from-context=old", "--to-context=new", "--yes"); !strings.Contains(out, "if the hub of --to-context=new never answers again, leave the flag out") {
		t.Errorf("the message about a hub that does not answer: %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	commands, err := howto.Run(ctx, howto.Guide{
		File: filepath.Join("..", "..", "docs", "guides", "lost-target-hub.md"), Dir: dir, Env: env,
		Placeholders: map[string]string{"FROM": "old", "MIGRATION": one.migration.Name, "HANGING": other.migration.Name},
	})
	if err != nil || commands < 4 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}
	one.mustHaveLostTarget(api.PhaseFailed, 0)
	m := other.read()
	if m.Status.CompletionTime == nil || m.Status.Counts.Forgotten != 2 || len(m.Status.Failures) != 2 || !strings.Contains(m.Status.Failures[1].Message, "left on the source hub") {
		t.Errorf("the migration with a cluster that is offline: %+v", m.Status)
	}
}

// isAt reports whether a cluster of a migration is at a place.
func isAt(place string) func(*api.ManagedClusterMigration) bool {
	return func(m *api.ManagedClusterMigration) bool {
		return slices.ContainsFunc(m.Status.Places, func(p api.PlaceCount) bool { return p.Place == place })
	}
}

// runWithoutTarget ends the migration in a process that has the source hub alone.
func (d *directMove) runWithoutTarget(ctx context.Context, through *fault.Transport) error {
	o := d.options("the second", through)
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
		if int32(i) < forgotten {
			want = "left on the source hub all objects of the cluster"
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
