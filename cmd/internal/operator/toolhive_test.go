package operator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

const toolHive = "github.com/stacklok/toolhive@v0.47.0"

// TestToolHiveCRDsAreInScopeByTheirOwnLabel: the real CRDs, as they
// were when v1alpha1 was stored, as they are, and without v1alpha1, under a
// configuration that names ToolHive's group and label.
func TestToolHiveCRDsAreInScopeByTheirOwnLabel(t *testing.T) {
	c := newCluster(t)
	released := toolHiveCRDs(t)
	if len(released) != 14 {
		t.Fatalf("%d CRDs, want 14", len(released))
	}
	for _, crd := range released {
		before := crd.DeepCopy()
		for i := range before.Spec.Versions {
			before.Spec.Versions[i].Storage = before.Spec.Versions[i].Name == "v1alpha1"
		}
		if err := controlplane.InstallCRDs(t.Context(), c.plane.Config(), before); err != nil {
			t.Fatal(err)
		}
	}
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "toolhive.stacklok.dev/v1alpha1", "kind": "MCPGroup",
		"metadata": map[string]any{"name": "flock", "namespace": "default"}, "spec": map[string]any{"description": "geese"},
	}}
	if err := c.Create(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	for _, crd := range released {
		_, err := controlplane.UpdateCRD(t.Context(), c.plane.Config(), crd.Name, func(there *apiextensionsv1.CustomResourceDefinition) {
			there.Spec.Versions = crd.Spec.Versions
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.manage(`storageVersionMigrator:
  scopes: [{group: toolhive.stacklok.dev, labelSelector: {matchLabels: {toolhive.stacklok.dev/auto-migrate-storage-version: "true"}}}]
  defaults: {settle: 0s}
`)
	for _, crd := range released {
		if len(crd.Spec.Versions) == 1 {
			continue // v1alpha1 is all it has, and nothing is to be migrated
		}
		c.awaitReason(crd.Name, decision.ReasonSucceeded.Name)
		if got := c.storedVersions(crd.Name); got != "v1beta1" {
			t.Errorf("storedVersions of %s is %s", crd.Name, got)
		}
		// The release after the next, without v1alpha1: the API server takes it now.
		_, err := controlplane.UpdateCRD(t.Context(), c.plane.Config(), crd.Name, func(there *apiextensionsv1.CustomResourceDefinition) {
			there.Spec.Versions = slices.DeleteFunc(there.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1alpha1" })
		})
		if err != nil {
			t.Errorf("drop v1alpha1 of %s: %v", crd.Name, err)
		}
	}
	c.mustBeStored("mcpgroups.toolhive.stacklok.dev", map[string]int{"v1beta1": 1, "v1alpha1": 0})
}

func toolHiveCRDs(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	dir, err := gomodule.Dir(t.Context(), toolHive)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "deploy", "charts", "operator-crds", "files", "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crds, err := controlplane.DecodeCRDs(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, crds...)
	}
	return all
}
