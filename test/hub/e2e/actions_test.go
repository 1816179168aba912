package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
	"github.com/godwit-dev/godwit/hub/message"
	"github.com/godwit-dev/godwit/hub/source"
	"github.com/godwit-dev/godwit/hub/target"
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

// TestActions moves clusters by the actions of the agents, in the order of the protocol. The agents of the clusters, the
// controllers of the hubs and their leases are real.
func TestActions(t *testing.T) {
	f := startFleet(t)
	names := []string{"actions-1", "actions-2"}
	clusters := importClusters(t, f, names...)
	create(t, f.hub1, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names[0], Name: names[0] + "-admin-password"}, Data: map[string][]byte{"password": []byte("p")},
	})
	create(t, f.hub2, &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager"}})
	account := types.NamespacedName{Namespace: "default", Name: "actions"}
	src := source.Hub{Client: f.hub1.Client, Migration: source.Migration{UID: "uid-of-actions", To: "hub2", Reconnect: 180 * time.Second}}
	dst := target.Hub{Client: f.hub2.Client, Migration: target.Migration{UID: "uid-of-actions", Account: account}}

	repeat(t, "ValidateSource", func(ctx context.Context) (cluster.Result, error) { return src.ValidateSource(ctx, names) })
	repeat(t, "ValidateTarget", func(ctx context.Context) (cluster.Result, error) { return dst.ValidateTarget(ctx, names) })
	await(t, "GrantRegistration", func(ctx context.Context) error {
		waits, err := dst.GrantRegistration(ctx)
		if waits != "" {
			err = errors.Join(err, errors.New(waits))
		}
		return err
	})
	token, err := dst.IssueToken(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.Kubeconfig(f.hub2.Config().Host, f.hub2.Config().CAData, token)
	if err != nil {
		t.Fatal(err)
	}
	repeat(t, "InstallBootstrap", func(ctx context.Context) (cluster.Result, error) { return src.InstallBootstrap(ctx, names, kubeconfig) })
	arrived := send(t, src, names)
	repeat(t, "ReceiveResources", func(ctx context.Context) (cluster.Result, error) { return dst.ReceiveResources(ctx, arrived) })
	repeat(t, "AcceptClusters", func(ctx context.Context) (cluster.Result, error) { return dst.AcceptClusters(ctx, names) })
	repeat(t, "ReleaseClusters", func(ctx context.Context) (cluster.Result, error) { return src.ReleaseClusters(ctx, names) })
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
	moved := &corev1.Secret{}
	if err := f.hub2.Client.Get(t.Context(), key, moved); err != nil || string(moved.Data["password"]) != "p" {
		t.Errorf("secret %s at the target: %v, %q", key, err, moved.Data["password"])
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
