package cluster_test

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

var (
	shared    *controlplane.ControlPlane
	revisions = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &shared, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return cluster.Install(ctx, cp.Config())
	}))
}

// Each fixture lives on a real API server: the server takes the objects, prunes no
// reference from them, and what it gives back is read as before.
func TestFixturesOnServer(t *testing.T) {
	client, err := dynamic.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "shop"
	if _, err := typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readers := map[string]func(*unstructured.Unstructured) reference.Usage{}
	for _, referrer := range (kubevirt.Family{}).Describe().Referrers {
		for _, version := range referrer.Versions {
			readers[referrer.Resource.WithVersion(version).String()] = referrer.Read
		}
	}
	create := func(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		created, err := cluster.Create(t.Context(), client, o)
		if err != nil {
			t.Fatal(err)
		}
		if read := readers[cluster.Resource(o.GroupVersionKind()).String()]; read != nil {
			if diff := cmp.Diff(read(o), read(created)); diff != "" {
				t.Errorf("the server's %s has other references (-given +stored):\n%s", o.GetKind(), diff)
			}
		}
		return created
	}
	for _, f := range fixture.All() {
		t.Run(f.Name, func(t *testing.T) {
			vm := create(t, fixture.Running(fixture.VirtualMachine(namespace, f.VM, fixture.InSpec|fixture.InStatus, f)))
			if _, err := client.Resource(cluster.Resource(vm.GroupVersionKind())).Namespace(namespace).Get(t.Context(), f.VM, metav1.GetOptions{}, "status"); err != nil {
				t.Errorf("a virtual machine's status is no resource of its own: %v", err)
			}
			snapshot := create(t, fixture.Snapshot(vm, f.VM+"-nightly"))
			create(t, fixture.SnapshotContent(vm, snapshot.GetName(), fixture.InSpec|fixture.InStatus, f))
			pool := fixture.Pool(vm, f.VM)
			create(t, pool)
			pool.SetAPIVersion("pool.kubevirt.io/v1alpha1")
			pool.SetName(pool.GetName() + "-older")
			create(t, pool)
			for _, owner := range []*unstructured.Unstructured{vm, snapshot} {
				given := f.Revision(owner)
				r, err := typed.AppsV1().ControllerRevisions(namespace).Create(t.Context(), given, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var family kubevirt.Family
				want, err := family.Decode(given, f.ExpectedType())
				if err != nil {
					t.Fatal(err)
				}
				got, err := family.Decode(r, f.ExpectedType())
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("the server's revision reads otherwise: %v (-given +stored):\n%s", err, diff)
				}
			}
			start, err := typed.AppsV1().ControllerRevisions(namespace).Create(t.Context(), fixture.StartRevision(vm), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := client.Resource(revisions).Namespace(namespace).Get(t.Context(), start.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := readers[revisions.String()](stored).References
			if len(got) != 1 || !got[0].Fixed || got[0].Revision != f.RevisionName(f.VM) || got[0].Expected != f.ExpectedType() {
				t.Errorf("the start revision refers to %+v, want %s", got, f.RevisionName(f.VM))
			}
		})
	}
}
