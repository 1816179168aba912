package e2e_test

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/hub/ocm"
)

//go:embed testdata/site.yaml
var siteYAML string

// stays are the objects of a site that do not move: one that no rule names, and one that the target's own add-ons make.
var stays = []string{"ConfigMap/NAME-not-moved", "ObservabilityAddon/observability-addon"}

// siteObjects are the objects of a managed cluster.
func siteObjects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.ReplaceAll(siteYAML, "NAME", name), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// importSites imports clusters, and creates their objects.
func importSites(t *testing.T, f fleet, names ...string) []*ocm.Cluster {
	t.Helper()
	clusters := importClusters(t, f, names...)
	for _, name := range names {
		for _, o := range siteObjects(t, name) {
			status := o.Object["status"]
			if err := f.hub1.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if status == nil {
				continue
			}
			o.Object["status"] = status
			if err := f.hub1.Client.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return clusters
}

// onHub are the objects of a site that a hub has, as text by kind and name, without what differs between hubs by nature.
func onHub(t *testing.T, h *ocm.Hub, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range siteObjects(t, name) {
		key := o.GetKind() + "/" + o.GetName()
		err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found[key] = text(t, o, "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers")
	}
	return found
}

// text is an object without some fields of its metadata.
func text(t *testing.T, o *unstructured.Unstructured, without ...string) string {
	t.Helper()
	for _, field := range without {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	data, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// moved are the objects of a site that a hub is to have after a move. An ImageClusterInstall has two marks by which its controller
// takes it for one that has installed its cluster already.
func moved(t *testing.T, before map[string]string, name string) map[string]string {
	t.Helper()
	after := maps.Clone(before)
	for _, key := range stays {
		delete(after, strings.ReplaceAll(key, "NAME", name))
	}
	key, o := "ImageClusterInstall/"+name, &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(after[key]), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetLabels(map[string]string{"velero.io/restore-name": "godwit"})
	o.SetAnnotations(map[string]string{"velero.io/restore-status": "true"})
	after[key] = text(t, o)
	return after
}

// mustHaveMoved fails the test unless hub2 has a cluster with all that hub1 had of it, and hub1 has it no more.
func mustHaveMoved(t *testing.T, f fleet, before map[string]string, c *ocm.Cluster) {
	t.Helper()
	if got, want := c.Hub(), f.hub2.Config().Host; got != want {
		t.Errorf("%s is registered at %s, want %s", c.Name, got, want)
	}
	if diff := cmp.Diff(moved(t, before, c.Name), onHub(t, f.hub2, c.Name)); diff != "" {
		t.Errorf("objects of %s (-hub1 before +hub2 after):\n%s", c.Name, diff)
	}
	mustBeGone(t, f.hub1, c.Name)
}

// mustBeGone fails the test unless a hub has nothing of a cluster that moved.
func mustBeGone(t *testing.T, h *ocm.Hub, name string) {
	t.Helper()
	left := slices.Collect(maps.Keys(onHub(t, h, name)))
	if want := []string{"ConfigMap/" + name + "-not-moved"}; !slices.Equal(left, want) {
		t.Errorf("hub %s has %v of cluster %s, want %v alone, which no rule names", h.Name, left, name, want)
	}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster %s of hub %s: %v, want it to be gone", name, h.Name, err)
	}
}

// mustBeBack fails the test unless hub1 has a cluster as before, and hub2 has nothing of it.
func mustBeBack(t *testing.T, f fleet, before map[string]string, name string) {
	t.Helper()
	if diff := cmp.Diff(before, onHub(t, f.hub1, name)); diff != "" {
		t.Errorf("objects of %s at hub1 (-before +after):\n%s", name, diff)
	}
	if left := slices.Collect(maps.Keys(onHub(t, f.hub2, name))); len(left) > 0 {
		t.Errorf("hub2 has %v of cluster %s", left, name)
	}
	if err := f.hub2.Client.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedCluster %s of hub2: %v, want it to be gone", name, err)
	}
}
