package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/hub/ocm"
)

const (
	// leaseName is that of the lease by which a hub sees that a cluster is alive, in the cluster's namespace.
	leaseName = "managed-cluster-lease"
	// acceptedAnnotation keeps the hub from setting hubAcceptsClient by itself.
	acceptedAnnotation = "open-cluster-management.io/automatically-accepted-on"
	configAnnotation   = "agent.open-cluster-management.io/klusterlet-config"
	bootstrapNamespace = "multicluster-engine"
	bootstrapRole      = "open-cluster-management:bootstrap"
	// csrLabel names the cluster that requests a certificate.
	csrLabel = "open-cluster-management.io/cluster-name"
)

// await polls until check returns nil.
func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	awaitWithin(t, patience, what, check)
}

func awaitWithin(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%s: %.1f s", what, time.Since(began).Seconds())
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// awaitRegistered waits until clusters are Joined and Available at a hub, and have renewed their leases there twice since
// the call. A condition alone proves nothing: it stays True for minutes after a cluster has left.
func awaitRegistered(t *testing.T, h *ocm.Hub, names ...string) {
	t.Helper()
	seen := map[string][]time.Time{}
	await(t, fmt.Sprintf("%v at %s", names, h.Name), func(ctx context.Context) error {
		var errs []error
		for _, name := range names {
			errs = append(errs, registered(ctx, h, name, seen))
		}
		return errors.Join(errs...)
	})
}

func registered(ctx context.Context, h *ocm.Hub, name string, seen map[string][]time.Time) error {
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return err
	}
	l := &coordinationv1.Lease{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: leaseName}, l); err != nil {
		return err
	}
	if renewed := l.Spec.RenewTime; renewed != nil {
		if times := seen[name]; len(times) == 0 || !times[len(times)-1].Equal(renewed.Time) {
			seen[name] = append(times, renewed.Time)
		}
	}
	for _, condition := range []string{clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		if !meta.IsStatusConditionTrue(mc.Status.Conditions, condition) {
			return fmt.Errorf("%s is not %s: %+v", name, condition, mc.Status.Conditions)
		}
	}
	if renewals := len(seen[name]) - 1; renewals < 2 {
		return fmt.Errorf("%s has renewed its lease %d times", name, max(renewals, 0))
	}
	return nil
}

func importClusters(t *testing.T, f fleet, names ...string) []*ocm.Cluster {
	t.Helper()
	var clusters []*ocm.Cluster
	for _, name := range names {
		c, err := f.spoke.Import(t.Context(), f.hub1, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
		clusters = append(clusters, c)
	}
	awaitRegistered(t, f.hub1, names...)
	return clusters
}

// TestRegister: three clusters register at a hub by requests that the controllers of the hub approve and sign.
func TestRegister(t *testing.T) {
	f := startFleet(t)
	names := []string{"register-1", "register-2", "register-3"}
	clusters := importClusters(t, f, names...)
	for _, c := range clusters {
		if got, want := c.Hub(), f.hub1.Config().Host; got != want {
			t.Errorf("%s is registered at %s, want %s", c.Name, got, want)
		}
		requests := &certificatesv1.CertificateSigningRequestList{}
		if err := f.hub1.Client.List(t.Context(), requests, client.MatchingLabels{csrLabel: c.Name}); err != nil {
			t.Fatal(err)
		}
		if len(requests.Items) != 1 || len(requests.Items[0].Status.Certificate) == 0 {
			t.Errorf("%s has %d CertificateSigningRequests, want one with a certificate", c.Name, len(requests.Items))
		}
	}
}

// edit changes a ManagedCluster.
func edit(t *testing.T, h *ocm.Hub, name string, change func(*clusterv1.ManagedCluster)) {
	t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Name: name}, mc); err != nil {
		t.Fatal(err)
	}
	before := mc.DeepCopy()
	change(mc)
	if err := h.Client.Patch(t.Context(), mc, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func accept(t *testing.T, h *ocm.Hub, name string, accepts bool) {
	t.Helper()
	edit(t, h, name, func(mc *clusterv1.ManagedCluster) { mc.Spec.HubAcceptsClient = accepts })
}

func create(t *testing.T, h *ocm.Hub, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := h.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Client.Delete(context.WithoutCancel(t.Context()), o) }) // a test may delete it
	}
}

// grantRegistration lets an account register clusters at a hub, and lets the hub approve them. It returns the account's
// kubeconfig.
func grantRegistration(t *testing.T, h *ocm.Hub, account string) []byte {
	t.Helper()
	create(t, h,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
		})
	approve(t, h, "system:serviceaccount:default:"+account)
	kubeconfig, err := h.IssueKubeconfig(t.Context(), "default", account, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// approve lets a hub approve the requests of a user until the end of the test, and returns when it does.
func approve(t *testing.T, h *ocm.Hub, user string) {
	t.Helper()
	manager := &operatorv1.ClusterManager{}
	set := func(ctx context.Context, r *operatorv1.RegistrationHubConfiguration) error {
		if err := h.Client.Get(ctx, client.ObjectKey{Name: clusterManager}, manager); err != nil {
			return err
		}
		before := manager.DeepCopy()
		manager.Spec.RegistrationConfiguration = r
		return h.Client.Patch(ctx, manager, client.MergeFrom(before))
	}
	if err := set(t.Context(), &operatorv1.RegistrationHubConfiguration{
		AutoApproveUsers: []string{user},
		FeatureGates:     []operatorv1.FeatureGate{{Feature: "ManagedClusterAutoApproval", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(context.WithoutCancel(t.Context()), nil); err != nil {
			t.Error(err)
		}
	})
	await(t, "the ClusterManager of "+h.Name, func(ctx context.Context) error {
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(manager), manager); err != nil {
			return err
		}
		if manager.Status.ObservedGeneration != manager.Generation {
			return errors.New("it is not applied")
		}
		return nil
	})
}

// createConfig creates a KlusterletConfig for a cluster, which adds the kubeconfig of another hub.
func createConfig(t *testing.T, h *ocm.Hub, name string, kubeconfig []byte) {
	t.Helper()
	create(t, h, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: bootstrapNamespace, Name: "bootstrap-" + name}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	}, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.open-cluster-management.io/v1alpha1", "kind": "KlusterletConfig",
		"metadata": map[string]any{"name": "migration-" + name},
		"spec": map[string]any{"multipleHubsConfig": map[string]any{
			"genBootstrapKubeConfigStrategy": "IncludeCurrentHub",
			"bootstrapKubeConfigs": map[string]any{"type": "LocalSecrets", "localSecretsConfig": map[string]any{
				"kubeConfigSecrets": []any{map[string]any{"name": "bootstrap-" + name}}, "hubConnectionTimeoutSeconds": int64(180),
			}},
		}},
	}})
}

// addHub gives the klusterlet of a cluster the kubeconfig of another hub, and returns when the klusterlet has it.
func addHub(t *testing.T, h *ocm.Hub, name string, kubeconfig []byte) {
	t.Helper()
	createConfig(t, h, name, kubeconfig)
	before := klusterletWork(t, h, name)
	edit(t, h, name, func(mc *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, configAnnotation, "migration-"+name)
	})
	awaitWork(t, h, name, before.Generation+1)
}

func klusterletWork(t *testing.T, h *ocm.Hub, name string) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: name + "-klusterlet"}, work); err != nil {
		t.Fatal(err)
	}
	return work
}

// awaitWork waits until the cluster has applied its klusterlet's ManifestWork at a generation or a later one.
func awaitWork(t *testing.T, h *ocm.Hub, name string, generation int64) {
	t.Helper()
	await(t, "the klusterlet of "+name, func(ctx context.Context) error {
		work := &workv1.ManifestWork{}
		if err := h.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-klusterlet"}, work); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		if work.Generation < generation || applied == nil || applied.ObservedGeneration != work.Generation {
			return fmt.Errorf("generation %d is not applied: %+v", generation, applied)
		}
		return nil
	})
}

// createUnaccepted creates the ManagedCluster of a cluster that is to come.
func createUnaccepted(t *testing.T, h *ocm.Hub, name string) {
	t.Helper()
	create(t, h, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{acceptedAnnotation: time.Now().UTC().Format(time.RFC3339)}},
		Spec:       clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 5},
	})
}

// TestSwitch moves a cluster to another hub and back, by the steps on which the protocol of package hub rests.
//
// Matrix: H71.
func TestSwitch(t *testing.T) {
	f := startFleet(t)
	const name = "switch-1"
	cluster := importClusters(t, f, name)[0]
	// The import controller of the target is slow, so that the klusterlet still has the kubeconfig of the source.
	f.hub2.StopImports()
	t.Cleanup(f.hub2.StartImports)
	addHub(t, f.hub1, name, grantRegistration(t, f.hub2, "migration"))

	createUnaccepted(t, f.hub2, name)
	accept(t, f.hub2, name, true)
	accept(t, f.hub1, name, false)
	awaitRegistered(t, f.hub2, name)
	if got, want := cluster.Hub(), f.hub2.Config().Host; got != want {
		t.Errorf("%s is registered at %s, want %s", name, got, want)
	}

	// The way back: a hub accepts the cluster at any time.
	accept(t, f.hub1, name, true)
	accept(t, f.hub2, name, false)
	awaitRegistered(t, f.hub1, name)
	generation := klusterletWork(t, f.hub1, name).Generation
	edit(t, f.hub1, name, func(mc *clusterv1.ManagedCluster) { delete(mc.Annotations, configAnnotation) })
	awaitWork(t, f.hub1, name, generation+1)
	awaitRegistered(t, f.hub1, name)
	if got, want := cluster.Hub(), f.hub1.Config().Host; got != want {
		t.Errorf("%s is registered at %s, want %s", name, got, want)
	}
}

// TestUnreachableTarget: a cluster that can't reach the hub which accepts it has no hub. Its agent ends again and again,
// and takes the other hub as soon as that accepts.
//
// Matrix: H38, H78.
func TestUnreachableTarget(t *testing.T) {
	f := startFleet(t)
	const name = "unreachable-1"
	cluster := importClusters(t, f, name)[0]
	cluster.CutOff(f.hub2)
	addHub(t, f.hub1, name, grantRegistration(t, f.hub2, "unreachable"))
	createUnaccepted(t, f.hub2, name)
	accept(t, f.hub2, name, true)
	accept(t, f.hub1, name, false)
	awaitRestarts(t, cluster)
	if mc := managedCluster(t, f.hub2, name); meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
		t.Errorf("%s is Joined at a hub that it can't reach", name)
	}
	accept(t, f.hub2, name, false)
	accept(t, f.hub1, name, true)
	awaitRegistered(t, f.hub1, name)
}

// awaitRestarts waits until the agent of a cluster has ended twice more.
func awaitRestarts(t *testing.T, c *ocm.Cluster) {
	t.Helper()
	before := c.Restarts()
	await(t, "the agent of "+c.Name+" to end twice", func(context.Context) error {
		if n := c.Restarts() - before; n < 2 {
			return fmt.Errorf("it has ended %d times", n)
		}
		return nil
	})
}

func managedCluster(t *testing.T, h *ocm.Hub, name string) *clusterv1.ManagedCluster {
	t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Name: name}, mc); err != nil {
		t.Fatal(err)
	}
	return mc
}

// TestOwnBootstrapEndsTheWayBack: as soon as a cluster is at the target, the import controller there gives its klusterlet
// the kubeconfig of the target alone. The agent then stays at the target, which refuses it, when only the source accepts it.
func TestOwnBootstrapEndsTheWayBack(t *testing.T) {
	f := startFleet(t)
	const name = "oneway-1"
	cluster := importClusters(t, f, name)[0]
	addHub(t, f.hub1, name, grantRegistration(t, f.hub2, "oneway"))
	createUnaccepted(t, f.hub2, name)
	accept(t, f.hub2, name, true)
	accept(t, f.hub1, name, false)
	awaitRegistered(t, f.hub2, name)
	awaitWork(t, f.hub2, name, 1)

	accept(t, f.hub1, name, true)
	accept(t, f.hub2, name, false)
	before := lease(t, f.hub1, name)
	// With both kubeconfigs the agent would leave the hub that refuses it for the first time.
	awaitRefusals(t, cluster, 3)
	if after := lease(t, f.hub1, name); !after.Spec.RenewTime.Equal(before.Spec.RenewTime) {
		t.Errorf("%s has renewed its lease at the source", name)
	}
	if got, want := cluster.Hub(), f.hub2.Config().Host; got != want {
		t.Errorf("%s is at %s, want %s, the only hub that its klusterlet knows", name, got, want)
	}
	// No hub has lost it: the target accepts it again.
	accept(t, f.hub1, name, false)
	accept(t, f.hub2, name, true)
	awaitRegistered(t, f.hub2, name)
}

// awaitRefusals waits until the hub of a cluster has refused its agent a number of times, which does not restart meanwhile.
func awaitRefusals(t *testing.T, c *ocm.Cluster, times int) {
	t.Helper()
	refusals := func() int {
		log, err := os.ReadFile(c.LogFile())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "cluster lease on hub cluster")
	}
	before, restarts := refusals(), c.Restarts()
	await(t, fmt.Sprintf("%d refusals of %s", times, c.Name), func(context.Context) error {
		if n := refusals() - before; n < times {
			return fmt.Errorf("its hub has refused it %d times", n)
		}
		return nil
	})
	if n := c.Restarts() - restarts; n > 0 {
		t.Errorf("the agent of %s has ended %d times", c.Name, n)
	}
}

func lease(t *testing.T, h *ocm.Hub, name string) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: leaseName}, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestKlusterletConfigOfTheTargetKeepsTheWayBack: a KlusterletConfig of the target that adds the source keeps the way back,
// also after the klusterlet has got the configuration of the target.
func TestKlusterletConfigOfTheTargetKeepsTheWayBack(t *testing.T) {
	f := startFleet(t)
	const name = "return-1"
	importClusters(t, f, name)
	addHub(t, f.hub1, name, grantRegistration(t, f.hub2, "return"))
	createUnaccepted(t, f.hub2, name)
	createConfig(t, f.hub2, name, f.hub1.BootstrapKubeconfig())
	edit(t, f.hub2, name, func(mc *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, configAnnotation, "migration-"+name)
	})
	accept(t, f.hub2, name, true)
	accept(t, f.hub1, name, false)
	awaitRegistered(t, f.hub2, name)
	awaitWork(t, f.hub2, name, 1)

	accept(t, f.hub1, name, true)
	accept(t, f.hub2, name, false)
	awaitRegistered(t, f.hub1, name)
}
