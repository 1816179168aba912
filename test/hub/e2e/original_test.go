package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// originals are two hubs with the original import controller, and no spoke: each cluster has an API server of its own.
var originals fleet

var startOriginals = sync.OnceValue(func() error {
	ctx := context.Background()
	crds, err := controlplane.ReadCRDs("../testdata/crds/*.yaml")
	if err != nil {
		return err
	}
	crds = slices.DeleteFunc(crds, isAccounts)
	for name, h := range map[string]**ocm.Hub{"original1": &originals.hub1, "original2": &originals.hub2} {
		if *h, err = ocm.StartHub(ctx, name, ocm.HubOptions{CRDs: crds, Original: ocm.OriginalOf()}); err != nil {
			return err
		}
		if err := (*h).Client.Create(ctx, &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: clusterManager}}); err != nil {
			return err
		}
	}
	return nil
})

func startOriginalFleet(t *testing.T) fleet {
	t.Helper()
	if ocm.OriginalOf().Source == "" {
		t.Skip("this test needs the source of managedcluster-import-controller: run `make e2e-hub-import IMPORT_CONTROLLER=FOLDER`")
	}
	if err := startOriginals(); err != nil {
		t.Fatal(err)
	}
	return originals
}

const (
	// shortGrace is the KlusterletConfig of a user who wants the work agent to evict soon.
	shortGrace = "short-grace"
	// klusterletCRD is the CRD without which no Klusterlet exists, nor its agents.
	klusterletCRD = "klusterlets.operator.open-cluster-management.io"
)

// importOwn imports a cluster with an API server, operator and agents of its own. Its work agent evicts after some seconds.
func importOwn(t *testing.T, f fleet, name string) *ocm.OwnCluster {
	t.Helper()
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		config := cluster.KlusterletConfig(shortGrace)
		config.Object["spec"] = map[string]any{"appliedManifestWorkEvictionGracePeriod": "15s"}
		if err := h.Client.Create(t.Context(), config); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	c, err := ocm.StartOwnCluster(t.Context(), f.hub1, name, map[string]string{cluster.AnnotationKlusterletConfig: shortGrace})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, c)
	awaitRegistered(t, f.hub1, name)
	awaitAppliedWorks(t, f.hub1, name)
	return c
}

// stopAtEnd stops a cluster with the test, and shows the ends of its logs if the test fails.
func stopAtEnd(t *testing.T, c *ocm.OwnCluster) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"kubelet.log", "agents.log", "operator.log"} {
				text, _ := os.ReadFile(c.Dir() + "/" + log)
				t.Logf("%s:\n%s", log, text[max(0, len(text)-6000):])
			}
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// awaitAppliedWorks waits until the cluster has applied both works of its klusterlet.
func awaitAppliedWorks(t *testing.T, h *ocm.Hub, name string) {
	t.Helper()
	await(t, "the works of the klusterlet of "+name, func(ctx context.Context) error {
		for _, work := range []string{cluster.KlusterletCRDWork(name), cluster.KlusterletWork(name)} {
			w := &workv1.ManifestWork{}
			if err := h.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: work}, w); err != nil {
				return err
			}
			if c := w.Status.Conditions; !slices.ContainsFunc(c, func(c metav1.Condition) bool {
				return c.Type == workv1.WorkApplied && c.Status == metav1.ConditionTrue && c.ObservedGeneration == w.Generation
			}) {
				return fmt.Errorf("ManifestWork %s has generation %d and conditions %v", work, w.Generation, c)
			}
		}
		return nil
	})
}

// appliedWorks returns the names of the AppliedManifestWorks on a cluster.
func appliedWorks(ctx context.Context, c *ocm.OwnCluster) ([]string, error) {
	works := &workv1.AppliedManifestWorkList{}
	if err := c.Client.List(ctx, works); err != nil {
		return nil, err
	}
	var names []string
	for _, w := range works.Items {
		names = append(names, w.Name)
	}
	return names, nil
}

// awaitEviction waits until the work agent has evicted works.
func awaitEviction(t *testing.T, c *ocm.OwnCluster, before []string) {
	t.Helper()
	await(t, "the eviction of what the other hub has applied", func(ctx context.Context) error {
		now, err := appliedWorks(ctx, c)
		if err != nil {
			return err
		}
		if left := slices.DeleteFunc(now, func(name string) bool { return !slices.Contains(before, name) }); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

// mustHaveKlusterlet fails the test unless the cluster has what its agents live on, and nothing deletes it.
func mustHaveKlusterlet(t *testing.T, c *ocm.OwnCluster, when string) {
	t.Helper()
	crd, klusterlet := &apiextensionsv1.CustomResourceDefinition{}, &operatorv1.Klusterlet{}
	for name, o := range map[string]client.Object{klusterletCRD: crd, "klusterlet": klusterlet} {
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil || o.GetDeletionTimestamp() != nil {
			t.Fatalf("%s: %T %s is deleted at %v, %v", when, o, name, o.GetDeletionTimestamp(), err)
		}
	}
}

// tokens counts the bootstrap tokens that the import controller of a hub has issued for a cluster.
func tokens(t *testing.T, h *ocm.Hub, name string) int {
	t.Helper()
	log, err := os.ReadFile(h.ImportLog())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte("request a new token for serviceaccount "+name+"/"))
}

// TestOriginalMove: beside the original import controller a cluster with the original operator and agents moves. It keeps its klusterlet when
// the cleanup comes after its work agent has evicted what the source has applied, and neither hub issues tokens all the time.
//
// Matrix: H89, H91.
func TestOriginalMove(t *testing.T) {
	f := startOriginalFleet(t)
	const name = "original-move"
	c := importOwn(t, f, name)
	before, err := appliedWorks(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	issued := tokens(t, f.hub1, name)
	m := f.release(t, "original-move", name)
	if more := tokens(t, f.hub1, name) - issued; more > 1 {
		t.Errorf("the import controller of the source has issued %d tokens while the klusterlet got the kubeconfigs of two hubs", more)
	}
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) {
		return m.dst.AwaitRegistration(ctx, m.names, leases)
	})
	issued = tokens(t, f.hub2, name)
	awaitEviction(t, c, before)
	if more := tokens(t, f.hub2, name) - issued; more > 0 {
		t.Errorf("the import controller of the target has issued %d tokens while the cluster waited for FinishMoved", more)
	}
	mustHaveKlusterlet(t, c, "before the cleanup")

	repeat(t, "FinishMoved", func(ctx context.Context) (cluster.Result, error) { return m.dst.FinishMoved(ctx, m.names) })
	repeat(t, "DeleteMoved", func(ctx context.Context) (cluster.Result, error) { return m.src.DeleteMoved(ctx, m.names) })
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistered(t, f.hub2, name)
	mustHaveKlusterlet(t, c, "after the move")
	if got, want := c.Hub(), f.hub2.Config().Host; got != want {
		t.Errorf("the cluster is registered at %s, want %s", got, want)
	}
	awaitBootstrap(t, f.hub2, c)
	t.Logf("tokens issued: %d at the source, %d at the target", tokens(t, f.hub1, name), tokens(t, f.hub2, name))
}

// TestOriginalReturn: a cluster that was registered at the target returns. Its works own its klusterlet again, its bootstrap kubeconfig has a
// token that its hub accepts, and a namespace that the target had before stays.
//
// Matrix: H89.
func TestOriginalReturn(t *testing.T) {
	f := startOriginalFleet(t)
	const name = "original-return"
	c := importOwn(t, f, name)
	create(t, f.hub2, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "theirs"}}
	create(t, f.hub2, theirs)
	atSource, err := appliedWorks(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	m := f.release(t, "original-return", name)
	leases := &cluster.Leases{}
	repeat(t, "AwaitRegistration", func(ctx context.Context) (cluster.Result, error) {
		return m.dst.AwaitRegistration(ctx, m.names, leases)
	})
	atTarget, err := appliedWorks(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	repeat(t, "RestoreAcceptance", func(ctx context.Context) (cluster.Result, error) { return m.src.RestoreAcceptance(ctx, m.names) })
	repeat(t, "StopAccepting", func(ctx context.Context) (cluster.Result, error) { return m.dst.StopAccepting(ctx, m.names) })
	repeat(t, "RevertBootstrap", func(ctx context.Context) (cluster.Result, error) { return m.src.RevertBootstrap(ctx, m.names) })
	back := &cluster.Leases{}
	repeat(t, "AwaitReturn", func(ctx context.Context) (cluster.Result, error) { return m.src.AwaitReturn(ctx, m.names, back) })
	repeat(t, "DeleteCreated", func(ctx context.Context) (cluster.Result, error) { return m.dst.DeleteCreated(ctx, m.names) })
	if err := m.dst.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistered(t, f.hub1, name)
	awaitAppliedWorks(t, f.hub1, name)
	own := cluster.KlusterletCRDWork(name)
	awaitEviction(t, c, slices.DeleteFunc(atTarget, func(work string) bool { return slices.Contains(atSource, work) }))
	mustHaveKlusterlet(t, c, "after the return")
	await(t, "ManifestWork "+own+" to own the CRD again", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: klusterletCRD}, crd); err != nil {
			return err
		}
		if !slices.ContainsFunc(crd.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == "AppliedManifestWork" && strings.HasSuffix(r.Name, own)
		}) {
			return fmt.Errorf("its owners are %v", crd.OwnerReferences)
		}
		return nil
	})
	awaitBootstrap(t, f.hub1, c)
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster of the target: %v, want it to be gone", err)
	}
	namespace := &corev1.Namespace{}
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("namespace %s that the target had before is deleted at %v, %v", name, namespace.DeletionTimestamp, err)
	}
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("ServiceAccount of the user in namespace %s of the target: %v", name, err)
	}
}

// awaitBootstrap waits until the cluster has the bootstrap kubeconfig by which the hub would import it, and fails the test unless the hub
// accepts its token.
func awaitBootstrap(t *testing.T, h *ocm.Hub, c *ocm.OwnCluster) {
	t.Helper()
	await(t, "the bootstrap kubeconfig of "+h.Name+" on "+c.Name, func(ctx context.Context) error {
		kubeconfig, err := h.ImportedBootstrap(ctx, c.Name)
		if err != nil {
			return err
		}
		secret := &corev1.Secret{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "open-cluster-management-agent", Name: "bootstrap-hub-kubeconfig"}, secret); err != nil {
			return err
		}
		if !bytes.Equal(secret.Data["kubeconfig"], kubeconfig) {
			return errors.New("the cluster has another one")
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return err
		}
		cluster, err := client.New(config, client.Options{Scheme: ocm.Scheme()})
		if err != nil {
			return err
		}
		return cluster.Get(ctx, client.ObjectKey{Name: c.Name}, &clusterv1.ManagedCluster{})
	})
}

// TestRenders: the simulated import controller writes what the original does, as far as a migration depends on it.
//
// Matrix: H138.
func TestRenders(t *testing.T) {
	h := startFleet(t).hub1
	defer h.FreezeImports()()
	compareRenders(t, h, "renders")
}

// TestOriginalRenders: the same of the original.
//
// Matrix: H138.
func TestOriginalRenders(t *testing.T) {
	compareRenders(t, startOriginalFleet(t).hub1, "original-renders")
}

var update = flag.Bool("update", false, "write the golden files")

// rendersFile has what the original import controller writes.
const rendersFile = "../klusterlet/testdata/import-controller.txt"

// compareRenders compares what the import controller of a hub writes with the golden file.
func compareRenders(t *testing.T, h *ocm.Hub, name string) {
	t.Helper()
	// settle is longer than the original takes from an event to an update.
	const settle = 2 * time.Second
	renders := klusterlet.Renders{Hub: h.Client, BootstrapNamespace: bootstrapNamespace, Name: name, Settle: settle}
	t.Cleanup(func() {
		if err := renders.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if *update {
		text, err := renders.Text(t.Context(), "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(rendersFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(rendersFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := renders.Text(t.Context(), string(golden), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text); diff != "" {
		t.Errorf("the works (-golden +got):\n%s", diff)
	}
}
