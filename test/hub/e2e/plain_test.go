package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// plains are two hubs without the import controller and KlusterletConfig. Each cluster has an API server of its own.
var plains fleet

var startPlains = sync.OnceValue(func() error {
	ctx := context.Background()
	crds, err := readPlainCRDs()
	if err != nil {
		return err
	}
	for name, h := range map[string]**ocm.Hub{"plain1": &plains.hub1, "plain2": &plains.hub2} {
		if *h, err = ocm.StartHub(ctx, name, ocm.HubOptions{CRDs: crds, Plain: true}); err != nil {
			return err
		}
		if err := (*h).Client.Create(ctx, &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: clusterManager}}); err != nil {
			return err
		}
	}
	// The hubs are clusters of the global hub.
	plains.spoke, err = ocm.StartSpoke(ctx)
	return err
})

// readPlainCRDs reads the CRDs of a hub without the import controller.
func readPlainCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := controlplane.ReadCRDs("../testdata/crds/*.yaml")
	return slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return isAccounts(crd) || crd.Spec.Group == cluster.KlusterletConfigKind.Group
	}), err
}

func startPlainFleet(t *testing.T) fleet {
	t.Helper()
	if os.Getenv("GODWIT_E2E_HUB_PLAIN") == "" {
		t.Skip("this test needs the klusterlet operator of Open Cluster Management: run `make e2e-hub-plain`")
	}
	if err := startPlains(); err != nil {
		t.Fatal(err)
	}
	return plains
}

// joinPlain joins a cluster to the first hub. Its user may have set feature gates.
func joinPlain(t *testing.T, f fleet, name string, gates ...operatorv1.FeatureGate) *ocm.OwnCluster {
	t.Helper()
	c, err := ocm.JoinOwnCluster(t.Context(), f.hub1, name, func(s *operatorv1.KlusterletSpec) {
		if len(gates) > 0 {
			s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{FeatureGates: gates}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, c)
	awaitRegistered(t, f.hub1, name)
	return c
}

// noClaims is a feature gate that a user has set.
var noClaims = operatorv1.FeatureGate{Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable}

// klusterletSpec reads the specification of the Klusterlet of a cluster.
func klusterletSpec(t *testing.T, c *ocm.OwnCluster) operatorv1.KlusterletSpec {
	t.Helper()
	k := &operatorv1.Klusterlet{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "klusterlet"}, k); err != nil {
		t.Fatal(err)
	}
	if r := k.Spec.RegistrationConfiguration; r == nil {
		// The API server sets these defaults as soon as there is a configuration.
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			KubeAPIQPS: 50, KubeAPIBurst: 100, BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.None},
		}
	}
	return k.Spec
}

const agentsNamespace = "open-cluster-management-agent"

// mustHaveNothingOf fails the test unless a cluster has nothing of a migration. After a move, what the work of the source has applied goes
// with its eviction.
func mustHaveNothingOf(t *testing.T, c *ocm.OwnCluster) {
	t.Helper()
	for name, o := range map[client.ObjectKey]client.Object{
		{Namespace: agentsNamespace, Name: klusterlet.SourceSecret}: &corev1.Secret{},
		{Namespace: agentsNamespace, Name: klusterlet.TargetSecret}: &corev1.Secret{},
		{Name: "godwit:klusterlet"}:                                 &rbacv1.ClusterRole{},
	} {
		await(t, fmt.Sprintf("%T %s of %s to go", o, name, c.Name), func(ctx context.Context) error {
			err := c.Client.Get(ctx, name, o)
			if err == nil {
				return fmt.Errorf("it has owners %v", o.GetOwnerReferences())
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// mustHaveNoWork fails the test unless a hub has no ManifestWork of a migration for a cluster.
func mustHaveNoWork(t *testing.T, h *ocm.Hub, name string) {
	t.Helper()
	err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: klusterlet.WorkName}, &workv1.ManifestWork{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("ManifestWork %s of hub %s: %v, want it to be gone", name, h.Name, err)
	}
}

// mustStayAfterRestart fails the test unless the agents of a cluster, started again, renew the lease at a hub.
func mustStayAfterRestart(t *testing.T, h *ocm.Hub, c *ocm.OwnCluster) {
	t.Helper()
	if err := c.RestartAgents(); err != nil {
		t.Fatal(err)
	}
	leases := &cluster.Leases{}
	await(t, c.Name+" at "+h.Name, func(ctx context.Context) error {
		fresh, err := leases.Fresh(ctx, cluster.Hub{Client: h.Client}, c.Name)
		if err == nil && !fresh {
			err = errors.New("the lease is not renewed")
		}
		return err
	})
	if got, want := c.Hub(), h.Config().Host; got != want {
		t.Errorf("%s is registered at %s, want %s", c.Name, got, want)
	}
}

// TestPlainMove: a cluster moves between two hubs of Open Cluster Management as it is, although its own bootstrap token has expired. It
// keeps its Klusterlet, which names the target alone, and stays there when its agents start again.
//
// Matrix: H102.
func TestPlainMove(t *testing.T) {
	f := startPlainFleet(t)
	const name = "plain-move"
	c := joinPlain(t, f, name, noClaims)
	before := klusterletSpec(t, c)
	m := f.release(t, "plain-move", name)
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) {
		return m.dst.AwaitRegistration(ctx, m.names, leases)
	})
	repeat(t, "FinishMoved", func(ctx context.Context) (cluster.Result, error) { return m.dst.FinishMoved(ctx, m.names) })
	repeat(t, "DeleteMoved", func(ctx context.Context) (cluster.Result, error) { return m.src.DeleteMoved(ctx, m.names) })
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustBeMoved(t, f, c, before)
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		mustHaveNoGrants(t, h)
	}
}

// mustBeMoved fails the test unless a cluster is at the second hub for good.
func mustBeMoved(t *testing.T, f fleet, c *ocm.OwnCluster, before operatorv1.KlusterletSpec) {
	t.Helper()
	awaitRegistered(t, f.hub2, c.Name)
	mustStayAfterRestart(t, f.hub2, c)
	if diff := cmp.Diff(before, klusterletSpec(t, c)); diff != "" {
		t.Errorf("the Klusterlet (-before +after):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: agentsNamespace, Name: "bootstrap-hub-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil || config.Host != f.hub2.Config().Host || config.BearerToken != "" {
		t.Errorf("the bootstrap kubeconfig is for %v, %v, want %s without a token", config, err, f.hub2.Config().Host)
	}
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		mustHaveNoWork(t, h, c.Name)
	}
	if err := f.hub1.Client.Get(t.Context(), client.ObjectKey{Name: c.Name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster %s of the source: %v, want it to be gone", c.Name, err)
	}
}

// mustHaveNoGrants fails the test if a hub has permissions or accounts of a migration.
func mustHaveNoGrants(t *testing.T, h *ocm.Hub) {
	t.Helper()
	bindings, accounts := &rbacv1.ClusterRoleBindingList{}, &corev1.ServiceAccountList{}
	for _, list := range []client.ObjectList{bindings, accounts} {
		if err := h.Client.List(t.Context(), list, client.HasLabels{"godwit.dev/shared-by-migrations"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(bindings.Items) + len(accounts.Items); n > 0 {
		t.Errorf("hub %s has %d bindings and accounts of migrations", h.Name, n)
	}
}

// mustBeReturned fails the test unless a cluster is at the first hub as before, and the second has nothing of it.
func mustBeReturned(t *testing.T, f fleet, c *ocm.OwnCluster, before operatorv1.KlusterletSpec) {
	t.Helper()
	awaitRegistered(t, f.hub1, c.Name)
	mustHaveNothingOf(t, c)
	mustStayAfterRestart(t, f.hub1, c)
	if diff := cmp.Diff(before, klusterletSpec(t, c)); diff != "" {
		t.Errorf("the Klusterlet (-before +after):\n%s", diff)
	}
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		mustHaveNoWork(t, h, c.Name)
	}
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKey{Name: c.Name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster of the target: %v, want it to be gone", err)
	}
}

// TestPlainReturn: a cluster that is registered at the target returns.
//
// Matrix: H103.
func TestPlainReturn(t *testing.T) {
	f := startPlainFleet(t)
	const name = "plain-return"
	c := joinPlain(t, f, name, noClaims)
	before := klusterletSpec(t, c)
	m := f.release(t, "plain-return", name)
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) {
		return m.dst.AwaitRegistration(ctx, m.names, leases)
	})
	m.returned(t)
	mustBeReturned(t, f, c, before)
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		mustHaveNoGrants(t, h)
	}
}

// TestPlainUnreachable: a cluster that can't reach the target returns.
//
// Matrix: H103.
func TestPlainUnreachable(t *testing.T) {
	f := startPlainFleet(t)
	const name = "plain-unreachable"
	c := joinPlain(t, f, name)
	before := klusterletSpec(t, c)
	c.CutOff(f.hub2)
	m := f.release(t, "plain-unreachable", name)
	m.returned(t)
	mustBeReturned(t, f, c, before)
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		mustHaveNoGrants(t, h)
	}
}

// TestPlainPartial: Godwit's manager and agents move two clusters of three. The third can't reach the target, and returns.
//
// Matrix: H102, H103.
func TestPlainPartial(t *testing.T) {
	t.Parallel()
	in := installPlain(t)
	names := []string{"plain-partial-1", "plain-partial-2", "plain-partial-3"}
	clusters, before := make([]*ocm.OwnCluster, len(names)), make([]operatorv1.KlusterletSpec, len(names))
	for i, name := range names {
		clusters[i] = joinPlain(t, in.fleet, name, noClaims)
		before[i] = klusterletSpec(t, clusters[i])
	}
	lost := clusters[1]
	lost.CutOff(in.hub2)
	m := in.migrate(t, "plain-partial", func(s *api.ManagedClusterMigrationSpec) {
		s.SupportedConfigs = &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: 8 * time.Minute}} // the shortest
	}, names...)
	m.mustReach(api.PhaseRegistering)
	m.mustReachWithin(8*time.Minute+2*patience, api.PhaseCompleted)
	if diff := cmp.Diff(&api.ClusterCounts{Total: 3, Moved: 2, Failed: 1, Restored: 1}, m.object.Status.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for i, c := range clusters {
		if c == lost {
			mustBeReturned(t, in.fleet, c, before[i])
		} else {
			mustBeMoved(t, in.fleet, c, before[i])
		}
	}
}

// TestPlainAbort: a user aborts a migration while its cluster registers, and the cluster returns.
//
// Matrix: H103.
func TestPlainAbort(t *testing.T) {
	t.Parallel()
	in := installPlain(t)
	const name = "plain-abort"
	c := joinPlain(t, in.fleet, name)
	before := klusterletSpec(t, c)
	c.CutOff(in.hub2)
	m := in.migrate(t, "plain-abort", nil, name)
	m.mustReach(api.PhaseRegistering)
	m.abort()
	m.mustReach(api.PhaseFailed)
	if got := m.object.Status.Counts; got == nil || got.Restored != 1 {
		t.Errorf("counts are %+v, want 1 restored: %s", got, m.describe())
	}
	mustBeReturned(t, in.fleet, c, before)
}
