package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// volatile are the kinds that change without a migration: what happened, who is alive, and requests that expire.
var volatile = []string{"Event", "Lease", "CertificateSigningRequest", "ComponentStatus", "APIService", "Endpoints", "EndpointSlice"}

// snapshot is all that a hub has, by kind, namespace and name. The UID is a part of it: what was deleted and created again is not as
// before. The status of what registration controllers and agents report is not, and neither are the heartbeats that the manager
// publishes, nor the Secrets in which agents of Godwit keep the last command of a migration.
func snapshot(t *testing.T, h *ocm.Hub) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range listable(t, h) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := h.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if o.GetLabels()["godwit.dev/hub-migration"] != "" || o.GetName() == manager.HubHeartbeats {
				continue
			}
			switch o.GetKind() {
			case "ManagedCluster", "ManagedClusterSet", "ManifestWork", "ClusterManager", "ManagedClusterMigration", "CustomResourceDefinition":
				delete(o.Object, "status")
				// Clusters of earlier tests are switched off, upon which a hub taints them.
				unstructured.RemoveNestedField(o.Object, "spec", "taints")
			}
			found[fmt.Sprintf("%s %s/%s", kind.Kind, o.GetNamespace(), o.GetName())] = text(t, o, "resourceVersion", "generation", "managedFields")
		}
	}
	return found
}

// differences are the objects that differ between two snapshots.
func differences(before, after map[string]string) []string {
	var all []string
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, ok := before[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		was, had := before[key]
		is, has := after[key]
		switch {
		case was == is:
		case !had:
			all = append(all, key+" is new:\n"+is)
		case !has:
			all = append(all, key+" is gone:\n"+was)
		default:
			all = append(all, key+" has changed from:\n"+was+"\nto:\n"+is)
		}
	}
	return all
}

// listable are the kinds that a hub serves, each at one version.
func listable(t *testing.T, h *ocm.Hub) []schema.GroupVersionKind {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var all []schema.GroupVersionKind
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range group.APIResources {
			if slices.Contains(r.Verbs, "list") && !slices.Contains(volatile, r.Kind) {
				all = append(all, version.WithKind(r.Kind))
			}
		}
	}
	return all
}

// TestDifferences: what is new, gone or changed is found.
func TestDifferences(t *testing.T) {
	before := map[string]string{"Secret a/gone": "1", "Secret a/same": "1", "Secret a/changed": "1"}
	after := map[string]string{"Secret a/new": "1", "Secret a/same": "1", "Secret a/changed": "2"}
	got := differences(before, after)
	want := []string{"Secret a/changed has changed from:\n1\nto:\n2", "Secret a/gone is gone:\n1", "Secret a/new is new:\n1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
