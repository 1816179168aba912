//go:build linux

package pods_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/program"
)

// Exit codes of `godwit cluster move`.
const (
	exitMoved    = 0
	exitReturned = 3
	exitPartial  = 4
)

// shortest is the shortest timeout of a phase that a migration may have.
const shortest = "--stage-timeout=8m"

// fleet is two hubs, and clusters that move between them.
type fleet struct {
	hub1, hub2 *site
	members    []*member
	godwit     string
	kubeconfig string
	// managers are the ClusterManagers as their users have made them.
	managers map[*site]operatorv1.ClusterManagerSpec
	// running are the workloads of clusters, which no move changes.
	running map[*member]map[string]string
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{managers: map[*site]operatorv1.ClusterManagerSpec{}, running: map[*member]map[string]string{}}
	f.hub1 = startHub(t, "hub1")
	f.hub2 = startHub(t, "hub2")
	f.hub1.awaitHub(t)
	modes := []operatorv1.InstallMode{operatorv1.InstallModeSingleton, operatorv1.InstallModeDefault, operatorv1.InstallModeSingleton}
	for i, mode := range modes {
		m := startMember(t, fmt.Sprintf("cluster%d", i+1), mode, f.hub1)
		m.awaitJoined(t, f.hub1)
		m.runOwn(t)
		f.hub1.giveWork(t, m.name)
		f.members = append(f.members, m)
	}
	f.hub1.endBootstrap(t)
	f.hub2.awaitHub(t)
	for _, m := range f.members {
		f.running[m] = m.workloads(t)
	}
	for _, h := range []*site{f.hub1, f.hub2} {
		f.managers[h] = h.manager(t)
	}
	root, err := program.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.godwit = filepath.Join(root, "bin", "ocm-pods", "godwit")
	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err = controlplane.WriteContexts(f.kubeconfig, "", map[string]*rest.Config{f.hub1.name: f.hub1.Config(), f.hub2.name: f.hub2.Config()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// manager reads the specification of the ClusterManager of a hub.
func (s *site) manager(t *testing.T) operatorv1.ClusterManagerSpec {
	t.Helper()
	m := &operatorv1.ClusterManager{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "cluster-manager"}, m); err != nil {
		t.Fatal(err)
	}
	return m.Spec
}

// address returns the address of the API server of a cluster.
func (s *site) address(t *testing.T) string {
	t.Helper()
	server, err := url.Parse(s.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return server.Hostname()
}

// command runs a command of godwit for a migration between two hubs.
func (f *fleet) command(ctx context.Context, from, to *site, args ...string) (string, int, error) {
	args = append(append([]string{"cluster"}, args...), "--from-context="+from.name, "--to-context="+to.name)
	return run(ctx, f.kubeconfig, f.godwit, args...)
}

// move moves clusters, and expects an exit code.
func (f *fleet) move(t *testing.T, from, to *site, code int, members ...*member) {
	t.Helper()
	args := []string{"move"}
	for _, m := range members {
		args = append(args, m.name)
	}
	out, got, err := f.command(t.Context(), from, to, append(args, "--yes", shortest)...)
	t.Logf("godwit cluster %s: exit code %d, %v\n%s", strings.Join(args, " "), got, err, out)
	if got != code {
		t.Fatalf("godwit cluster %s: exit code %d, want %d", strings.Join(args, " "), got, code)
	}
}

// mustBeAt fails the test unless clusters are at one of two hubs alone, also after their agents have started again, with their Klusterlets
// and workloads as before, and hubs have nothing of a migration. A cluster that has moved keeps two Secrets and a ClusterRole until its work
// agent evicts them, an hour later by default.
func (f *fleet) mustBeAt(t *testing.T, at, not *site, members ...*member) {
	t.Helper()
	for _, m := range members {
		m.restartAgents(t)
	}
	at.awaitRenewed(t, members...)
	for _, m := range members {
		at.awaitAvailable(t, m.name)
		if diff := cmp.Diff(m.before, m.spec(t)); diff != "" {
			t.Errorf("the Klusterlet of %s (-before +after):\n%s", m.name, diff)
		}
		if diff := cmp.Diff(f.running[m], m.workloads(t)); diff != "" {
			t.Errorf("the workloads of %s (-before +after):\n%s", m.name, diff)
		}
		if err := not.Get(t.Context(), client.ObjectKey{Name: m.name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
			t.Errorf("ManagedCluster %s of %s: %v, want it to be gone", m.name, not.name, err)
		}
		for _, h := range []*site{at, not} {
			err := h.Get(t.Context(), client.ObjectKey{Namespace: m.name, Name: klusterlet.WorkName}, &workv1.ManifestWork{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("ManifestWork %s of %s at %s: %v, want it to be gone", klusterlet.WorkName, m.name, h.name, err)
			}
		}
	}
	f.mustHaveNothing(t)
}

// mustHaveNothing fails the test if a hub has permissions or accounts of a migration, or another ClusterManager than before.
func (f *fleet) mustHaveNothing(t *testing.T) {
	t.Helper()
	for _, h := range []*site{f.hub1, f.hub2} {
		bindings, accounts := &rbacv1.ClusterRoleBindingList{}, &corev1.ServiceAccountList{}
		for _, list := range []client.ObjectList{bindings, accounts} {
			if err := h.List(t.Context(), list, client.HasLabels{"godwit.dev/shared-by-migrations"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(bindings.Items) + len(accounts.Items); n > 0 {
			t.Errorf("%s has %d bindings and accounts of migrations", h.name, n)
		}
		if diff := cmp.Diff(f.managers[h], h.manager(t)); diff != "" {
			t.Errorf("the ClusterManager of %s (-before +after):\n%s", h.name, diff)
		}
	}
}

// TestMoves: of three clusters, one can't reach the target and returns, and the other two move. A user aborts the next move of the third,
// which returns again. When it reaches the target, it moves, too. Two clusters move back. Pods that do not belong to Open Cluster
// Management run throughout.
//
// Matrix: H102, H103.
func TestMoves(t *testing.T) {
	f := startFleet(t)
	moved, lost := []*member{f.members[0], f.members[1]}, f.members[2]
	if err := lost.CutOff(f.hub2.address(t)); err != nil {
		t.Fatal(err)
	}
	t.Log("one of three clusters can't reach the target")
	f.move(t, f.hub1, f.hub2, exitPartial, f.members...)
	f.mustBeAt(t, f.hub2, f.hub1, moved...)
	f.mustBeAt(t, f.hub1, f.hub2, lost)
	lost.awaitNothing(t)

	t.Log("a user aborts a move")
	f.abort(t, lost)
	f.mustBeAt(t, f.hub1, f.hub2, lost)
	lost.awaitNothing(t)

	t.Log("the third cluster reaches the target")
	if err := lost.Reconnect(f.hub2.address(t)); err != nil {
		t.Fatal(err)
	}
	f.move(t, f.hub1, f.hub2, exitMoved, lost)
	f.mustBeAt(t, f.hub2, f.hub1, lost)

	t.Log("two clusters move back")
	f.move(t, f.hub2, f.hub1, exitMoved, moved...)
	f.mustBeAt(t, f.hub1, f.hub2, moved...)
}

// abort begins to move a cluster that can't reach the target, and requests a rollback while it registers.
func (f *fleet) abort(t *testing.T, m *member) {
	t.Helper()
	ended := make(chan int, 1)
	go func() {
		out, code, err := f.command(t.Context(), f.hub1, f.hub2, "move", m.name, "--yes", shortest)
		t.Logf("godwit cluster move %s: exit code %d, %v\n%s", m.name, code, err, out)
		ended <- code
	}()
	const phase = "Registering"
	var migration string
	await(t, "the migration of "+m.name+" to register", func(ctx context.Context) error {
		out, _, err := run(ctx, f.kubeconfig, f.godwit, "cluster", "status", "--from-context="+f.hub1.name, `-o=jsonpath={range .items[*]}{.name} {.phase}{"\n"}{end}`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(out) {
			name, now, _ := strings.Cut(strings.TrimSpace(line), " ")
			if now == phase && strings.HasPrefix(name, m.name+"-move-") {
				migration = name
				return nil
			}
		}
		return fmt.Errorf("no migration of it is in phase %s:\n%s", phase, out)
	})
	if out, code, err := f.command(t.Context(), f.hub1, f.hub2, "rollback", migration, "--yes"); err != nil {
		t.Fatalf("godwit cluster rollback %s: exit code %d: %v\n%s", migration, code, err, out)
	}
	if code := <-ended; code != exitReturned {
		t.Fatalf("the aborted move ends with exit code %d, want %d", code, exitReturned)
	}
}
