package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// repeat repeats the pass of an action until it is done for all clusters, as an agent does.
func repeat(t *testing.T, action string, pass func(context.Context) (cluster.Result, error)) {
	t.Helper()
	await(t, action, func(ctx context.Context) error {
		r, err := pass(ctx)
		if err != nil {
			return err
		}
		if len(r.Failed) > 0 {
			t.Fatalf("%s: %v", action, r.Failed)
		}
		if len(r.Waiting) > 0 {
			return fmt.Errorf("%v", r.Waiting)
		}
		return nil
	})
}

// playedMigration is a migration of which a test plays the manager.
type playedMigration struct {
	src source.Hub
	dst target.Hub
	// names of its clusters.
	names []string
}

// release executes the actions until the source has released the clusters.
func (f fleet) release(t *testing.T, id string, names ...string) playedMigration {
	t.Helper()
	at1 := cluster.Hub{Client: f.hub1.Client, UID: id}
	m := playedMigration{
		src:   source.Hub{Hub: at1, Returns: target.Returning(at1, "default", "hub2"), To: "hub2", Reconnect: 180 * time.Second},
		dst:   target.Hub{Hub: cluster.Hub{Client: f.hub2.Client, UID: id}, Account: types.NamespacedName{Namespace: "default", Name: id}, Reconnect: 180 * time.Second},
		names: names,
	}
	repeat(t, "ValidateSource", func(ctx context.Context) (cluster.Result, error) { return m.src.ValidateSource(ctx, names) })
	repeat(t, "ValidateTarget", func(ctx context.Context) (cluster.Result, error) { return m.dst.ValidateTarget(ctx, names) })
	await(t, "GrantRegistration", func(ctx context.Context) error {
		waits, err := m.dst.GrantRegistration(ctx)
		if waits != "" {
			err = errors.Join(err, errors.New(waits))
		}
		return err
	})
	token, err := m.dst.IssueToken(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.Kubeconfig(f.hub2.Config().Host, f.hub2.Config().CAData, token)
	if err != nil {
		t.Fatal(err)
	}
	repeat(t, "InstallBootstrap", func(ctx context.Context) (cluster.Result, error) {
		return m.src.InstallBootstrap(ctx, names, kubeconfig)
	})
	arrived := send(t, m.src, names)
	repeat(t, "ReceiveResources", func(ctx context.Context) (cluster.Result, error) { return m.dst.ReceiveResources(ctx, arrived) })
	repeat(t, "AcceptClusters", func(ctx context.Context) (cluster.Result, error) { return m.dst.AcceptClusters(ctx, names) })
	repeat(t, "ReleaseClusters", func(ctx context.Context) (cluster.Result, error) { return m.src.ReleaseClusters(ctx, names) })
	return m
}

// TestActions moves clusters by the actions of the agents, in the order of the protocol. The agents of the clusters, the
// controllers of the hubs and their leases are real.
func TestActions(t *testing.T) {
	f := startFleet(t)
	names := []string{"actions-1", "actions-2"}
	clusters := importClusters(t, f, names...)
	create(t, f.hub1, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names[0], Name: names[0] + "-admin-password"}, Data: map[string][]byte{"password": []byte("p")},
	})
	m := f.release(t, "actions", names...)
	src, dst, account := m.src, m.dst, m.dst.Account
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) { return dst.AwaitRegistration(ctx, names, leases) })
	repeat(t, "FinishMoved", func(ctx context.Context) (cluster.Result, error) { return dst.FinishMoved(ctx, names) })
	repeat(t, "DeleteMoved", func(ctx context.Context) (cluster.Result, error) { return src.DeleteMoved(ctx, names) })
	if err := dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistered(t, f.hub2, names...)
	for _, c := range clusters {
		if got, want := c.Hub(), f.hub2.Config().Host; got != want {
			t.Errorf("%s is registered at %s, want %s", c.Name, got, want)
		}
		if err := f.hub1.Client.Get(t.Context(), client.ObjectKey{Name: c.Name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
			t.Errorf("ManagedCluster %s of the source: %v, want it to be gone", c.Name, err)
		}
	}
	key := client.ObjectKey{Namespace: names[0], Name: names[0] + "-admin-password"}
	secret := &corev1.Secret{}
	if err := f.hub2.Client.Get(t.Context(), key, secret); err != nil || string(secret.Data["password"]) != "p" {
		t.Errorf("secret %s at the target: %v, %q", key, err, secret.Data["password"])
	}
	if err := f.hub1.Client.Get(t.Context(), key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("secret %s at the source: %v, want it to be gone", key, err)
	}
	// Nothing that was granted is left.
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := f.hub2.Client.List(t.Context(), bindings); err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		for _, s := range b.Subjects {
			if s.Namespace == account.Namespace && s.Name == account.Name {
				t.Errorf("ClusterRoleBinding %s is left", b.Name)
			}
		}
	}
}

// returned executes the actions of a rollback.
func (m playedMigration) returned(t *testing.T) {
	t.Helper()
	repeat(t, "RestoreAcceptance", func(ctx context.Context) (cluster.Result, error) { return m.src.RestoreAcceptance(ctx, m.names) })
	repeat(t, "StopAccepting", func(ctx context.Context) (cluster.Result, error) { return m.dst.StopAccepting(ctx, m.names) })
	repeat(t, "RemovePauses", func(ctx context.Context) (cluster.Result, error) { return m.src.RemovePauses(ctx, m.names) })
	repeat(t, "RevertBootstrap", func(ctx context.Context) (cluster.Result, error) { return m.src.RevertBootstrap(ctx, m.names) })
	leases := &cluster.Leases{}
	repeat(t, "AwaitReturn", func(ctx context.Context) (cluster.Result, error) { return m.src.AwaitReturn(ctx, m.names, leases) })
	repeat(t, "DeleteCreated", func(ctx context.Context) (cluster.Result, error) { return m.dst.DeleteCreated(ctx, m.names) })
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestActionsReturn: clusters that can't reach the target return by the actions of a rollback. What the user had is as
// before, and the target has nothing of them.
func TestActionsReturn(t *testing.T) {
	f := startFleet(t)
	const name = "actions-back-1"
	c := importClusters(t, f, name)[0]
	before := managedCluster(t, f.hub1, name)
	c.CutOff(f.hub2)
	m := f.release(t, "actions-back", name)
	awaitRestarts(t, c)

	m.returned(t)
	awaitRegistered(t, f.hub1, name)
	after := managedCluster(t, f.hub1, name)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("spec of the ManagedCluster (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("annotations of the ManagedCluster (-before +after):\n%s", diff)
	}
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster of the target: %v, want it to be gone", err)
	}
}

// TestActionsReturnFromTheTarget: a cluster that is registered at the target, and has applied what the import controller of
// the target configures, returns by the actions of a rollback.
func TestActionsReturnFromTheTarget(t *testing.T) {
	f := startFleet(t)
	const name = "actions-return-1"
	importClusters(t, f, name)
	m := f.release(t, "actions-return", name)
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) {
		return m.dst.AwaitRegistration(ctx, m.names, leases)
	})
	awaitWork(t, f.hub2, name, 1)

	repeat(t, "RestoreAcceptance", func(ctx context.Context) (cluster.Result, error) { return m.src.RestoreAcceptance(ctx, m.names) })
	repeat(t, "StopAccepting", func(ctx context.Context) (cluster.Result, error) { return m.dst.StopAccepting(ctx, m.names) })
	repeat(t, "RevertBootstrap", func(ctx context.Context) (cluster.Result, error) { return m.src.RevertBootstrap(ctx, m.names) })
	leases = &cluster.Leases{}
	repeat(t, "AwaitReturn", func(ctx context.Context) (cluster.Result, error) { return m.src.AwaitReturn(ctx, m.names, leases) })
	repeat(t, "DeleteCreated", func(ctx context.Context) (cluster.Result, error) { return m.dst.DeleteCreated(ctx, m.names) })
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistered(t, f.hub1, name)
}

// send returns what the source sends, as the target puts it together.
func send(t *testing.T, src source.Hub, names []string) []message.Resources {
	t.Helper()
	arrived := map[string]message.Resources{}
	reassembler := message.NewReassembler(names, 64<<20)
	repeat(t, "SendResources", func(ctx context.Context) (cluster.Result, error) {
		return src.SendResources(ctx, source.Parcel{Clusters: names, Total: len(names)}, func(_ context.Context, b message.ResourceBundle) error {
			complete, err := reassembler.Add(b)
			for _, r := range complete {
				arrived[r.Cluster] = r
			}
			return err
		})
	})
	return slices.Collect(maps.Values(arrived))
}
