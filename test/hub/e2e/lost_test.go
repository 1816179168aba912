package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/test/program"
)

// lostFleet returns the hubs of plain clusters with a first hub of the test's own, which it may stop for good.
func lostFleet(t *testing.T) fleet {
	t.Helper()
	f := startPlainFleet(t)
	crds, err := readPlainCRDs()
	if err != nil {
		t.Fatal(err)
	}
	f.hub1 = startLostHub(t, ocm.HubOptions{CRDs: crds, Plain: true})
	return f
}

// startLostHub starts a hub until the end of the test, or until its API server is stopped for good.
func startLostHub(t *testing.T, o ocm.HubOptions) *ocm.Hub {
	t.Helper()
	h, err := ocm.StartHub(t.Context(), "lost", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Log(err) // its controllers have lost their API server
		}
	})
	return h
}

// applyWorkload has a hub apply a ConfigMap to a cluster, which is owned by the work of the hub.
func applyWorkload(t *testing.T, h *ocm.Hub, c *ocm.OwnCluster) *corev1.ConfigMap {
	t.Helper()
	o := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workload"},
		Data: map[string]string{"from": h.Name},
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: c.Name, Name: "workload"}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Object: o}}}
	if err := h.Client.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	applied := &corev1.ConfigMap{}
	await(t, "the workload of "+c.Name, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(o), applied); err != nil {
			return err
		}
		works := &workv1.AppliedManifestWorkList{}
		if err := c.Client.List(ctx, works); err != nil {
			return err
		}
		for _, w := range works.Items {
			if w.Spec.ManifestWorkName == work.Name && len(w.Status.AppliedResources) > 0 && len(applied.OwnerReferences) > 0 {
				return nil
			}
		}
		return errors.New("no work owns it")
	})
	return applied
}

// mustBeRejoined fails the test unless a cluster is at the second hub as it was at the first one, and has kept its workload without an owner.
func mustBeRejoined(t *testing.T, f fleet, c *ocm.OwnCluster, before operatorv1.KlusterletSpec, workload *corev1.ConfigMap) {
	t.Helper()
	awaitRegistered(t, f.hub2, c.Name)
	mustHaveNothingOf(t, c)
	mustStayAfterRestart(t, f.hub2, c)
	if diff := cmp.Diff(before, klusterletSpec(t, c)); diff != "" {
		t.Errorf("the Klusterlet (-before +after):\n%s", diff)
	}
	mustOwnItself(t, c, workload)
	works := &workv1.AppliedManifestWorkList{}
	if err := c.Client.List(t.Context(), works); err != nil {
		t.Fatal(err)
	}
	for _, w := range works.Items {
		t.Errorf("AppliedManifestWork %s of ManifestWork %s is left", w.Name, w.Spec.ManifestWorkName)
	}
	mustHaveNoGrants(t, f.hub2)
	mc := managedCluster(t, f.hub2, c.Name)
	if mark := mc.Labels[cluster.LabelMigration]; mark != "" {
		t.Errorf("ManagedCluster %s is marked by %s", c.Name, mark)
	}
}

// lostGuide runs docs/guides/lost-hub.md for a cluster.
func lostGuide(t *testing.T, f fleet, c *ocm.OwnCluster) {
	t.Helper()
	dir := t.TempDir()
	if _, err := program.Godwit(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	kubectl, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	contexts := filepath.Join(dir, "kubeconfig")
	if err := controlplane.WriteContexts(contexts, "", map[string]*rest.Config{"new": f.hub2.Config(), "own": c.Config()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	commands, err := howto.Run(ctx, howto.Guide{
		File: filepath.Join("..", "..", "..", "docs", "guides", "lost-hub.md"), Dir: dir,
		Env:          append(os.Environ(), "KUBECONFIG="+contexts, "HOME="+t.TempDir(), "PATH="+dir+":"+kubectl+":"+os.Getenv("PATH")),
		Placeholders: map[string]string{"TO": "new", "OWN": "own", "CLUSTER": c.Name},
	})
	if err != nil || commands < 4 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}
}

// moveBy moves a cluster without its lost hub, as a user who has exactly the roles that the program prints for both sides.
func moveBy(t *testing.T, f fleet, c *ocm.OwnCluster, user string) {
	t.Helper()
	dir := t.TempDir()
	godwit, err := program.Godwit(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := controlplane.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]*rest.Config{}
	for _, side := range []struct {
		name, command, namespace string
		*controlplane.ControlPlane
	}{{"new", "cluster-move", "godwit-migrations", f.hub2.ControlPlane}, {"own", "cluster-rejoin", agentsNamespace, c.ControlPlane}} {
		if users[side.name], err = side.AddUser(user); err != nil {
			t.Fatal(err)
		}
		admin := filepath.Join(dir, side.name)
		if err := controlplane.WriteKubeconfig(admin, side.Config()); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("%[1]s --kubeconfig=%[2]s create namespace %[3]s --dry-run=client -o yaml | %[1]s --kubeconfig=%[2]s apply -f - && %[4]s rbac --for=%[5]s --user=%[6]s | %[1]s --kubeconfig=%[2]s apply -f -",
			kubectl, admin, side.namespace, godwit, side.command, user)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	contexts := filepath.Join(dir, "user")
	if err := controlplane.WriteContexts(contexts, "", users); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, godwit, "cluster", "move", c.Name, "--to-context=new", "--cluster-context=own", "--on-evicted-works=Orphan", "--yes", "--kubeconfig="+contexts).CombinedOutput()
	if err != nil {
		t.Fatalf("move %s as %s: %v\n%s", c.Name, user, err, out)
	}
}

// TestPlainLostHub: the hub of a cluster never returns. The guide brings the cluster to another hub, whose user has created its ManagedCluster with
// labels, and its workload stays.
//
// Matrix: H108.
func TestPlainLostHub(t *testing.T) {
	f := lostFleet(t)
	c := joinPlain(t, f, "lost", noClaims)
	before, workload := klusterletSpec(t, c), applyWorkload(t, f.hub1, c)
	if err := f.hub1.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	create(t, f.hub2, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: map[string]string{"region": "east"}}, Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 5},
	})
	lostGuide(t, f, c)
	mustBeRejoined(t, f, c, before, workload)
	if mc := managedCluster(t, f.hub2, c.Name); mc.Labels["region"] != "east" {
		t.Errorf("ManagedCluster %s has labels %v, want that of its user", c.Name, mc.Labels)
	}
}

// TestPlainLostInRegistering: a migration loses its source hub after that has released the cluster. No process approves the request of the
// cluster at the target, and a user with the printed roles brings it there.
//
// Matrix: H109.
func TestPlainLostInRegistering(t *testing.T) {
	f := lostFleet(t)
	c := joinPlain(t, f, "lost-registering", noClaims)
	before, workload := klusterletSpec(t, c), applyWorkload(t, f.hub1, c)
	m := f.release(t, "lost-registering", c.Name)
	await(t, "the request of "+c.Name+" at the target", func(ctx context.Context) error {
		requests, err := cluster.Hub{Client: f.hub2.Client}.SigningRequests(ctx, c.Name)
		if err == nil && len(requests) == 0 {
			err = errors.New("it has made none")
		}
		return err
	})
	if err := f.hub1.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	moveBy(t, f, c, "mia")
	if err := m.dst.RevokeRegistration(t.Context()); err != nil { // the account of the migration is of all its clusters
		t.Fatal(err)
	}
	mustBeRejoined(t, f, c, before, workload)
}

// TestOriginalLostHub: the same on hubs with the original import controller. The work agent would evict what the lost hub has applied 15 s after
// the cluster has registered: the workload, and the CRD of the klusterlet. Both stay.
//
// Matrix: H110.
func TestOriginalLostHub(t *testing.T) {
	f := lostOriginalFleet(t)
	c := importOwn(t, f, "lost-original")
	workload := applyWorkload(t, f.hub1, c)
	if err := f.hub1.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	create(t, f.hub2, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 5}})
	lostGuide(t, f, c)
	mustBeImported(t, f, c, workload)
}

// TestOriginalLostInRegistering: the same, after a migration has released the cluster. The import controller of the target has not been told to
// import the cluster, until the guide does so.
//
// Matrix: H110.
func TestOriginalLostInRegistering(t *testing.T) {
	f := lostOriginalFleet(t)
	c := importOwn(t, f, "lost-original-registering")
	workload := applyWorkload(t, f.hub1, c)
	m := f.release(t, c.Name, c.Name)
	if err := f.hub1.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	lostGuide(t, f, c)
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustBeImported(t, f, c, workload)
}

// lostOriginalFleet returns the hubs of imported clusters with a first hub of the test's own.
func lostOriginalFleet(t *testing.T) fleet {
	t.Helper()
	f := startOriginalFleet(t)
	crds, err := controlplane.ReadCRDs("../testdata/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.hub1 = startLostHub(t, ocm.HubOptions{CRDs: slices.DeleteFunc(crds, isAccounts), Original: ocm.OriginalOf()})
	return f
}

// mustBeImported fails the test unless the import controller of the second hub has a cluster, which has kept its workload and its klusterlet.
func mustBeImported(t *testing.T, f fleet, c *ocm.OwnCluster, workload *corev1.ConfigMap) {
	t.Helper()
	awaitRegistered(t, f.hub2, c.Name)
	awaitAppliedWorks(t, f.hub2, c.Name)
	time.Sleep(30 * time.Second) // twice the grace period
	mustStayAfterRestart(t, f.hub2, c)
	mustOwnItself(t, c, workload)
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: klusterletCRD}, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Error(err)
	}
	k := &operatorv1.Klusterlet{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "klusterlet"}, k); err != nil {
		t.Fatal(err)
	}
	if secrets, several := klusterlet.KnowsSeveral(k); several || k.Annotations["godwit.dev/rejoin"] != "" {
		t.Errorf("the Klusterlet has annotations %v, and the hubs of %v", k.Annotations, secrets)
	}
	if w := k.Spec.WorkConfiguration; w != nil && w.AppliedManifestWorkEvictionGracePeriod != nil && w.AppliedManifestWorkEvictionGracePeriod.Hours() > 1 {
		t.Errorf("the work agent evicts after %s", w.AppliedManifestWorkEvictionGracePeriod.Duration)
	}
	mc := managedCluster(t, f.hub2, c.Name)
	if mark := mc.Labels[cluster.LabelMigration]; mark != "" {
		t.Errorf("ManagedCluster %s is marked by %s", c.Name, mark)
	}
	mustHaveNoGrants(t, f.hub2)
}

// mustOwnItself fails the test unless a workload is the one of before, and no work owns it.
func mustOwnItself(t *testing.T, c *ocm.OwnCluster, workload *corev1.ConfigMap) {
	t.Helper()
	now := &corev1.ConfigMap{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(workload), now); err != nil || now.UID != workload.UID || len(now.OwnerReferences) > 0 {
		t.Errorf("the workload has UID %s and owners %v, %v, want UID %s without an owner", now.UID, now.OwnerReferences, err, workload.UID)
	}
}
