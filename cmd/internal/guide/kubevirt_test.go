package guide_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/test/controlplane"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// instancetypeGroup is the API group of the objects that KubeVirt stores in
// ControllerRevisions. A cluster has KubeVirt's CRDs if its guide names the group.
const instancetypeGroup = "instancetype.kubevirt.io"

// installKubeVirt installs KubeVirt's CRDs as before v1beta1: an instance type is stored
// at v1alpha1.
func (c *cluster) installKubeVirt() {
	c.t.Helper()
	crds, err := kubevirtcluster.CRDs(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, crd := range crds {
		if crd.Spec.Group == instancetypeGroup {
			names = append(names, crd.Name)
			storeAt("v1alpha1")(crd)
		}
	}
	config := c.plane.Config()
	if err := controlplane.InstallCRDs(c.t.Context(), config, crds...); err != nil {
		c.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = kubevirtcluster.Create(c.t.Context(), client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": instancetypeGroup + "/v1alpha1",
		"kind":       "VirtualMachineClusterInstancetype",
		"metadata":   map[string]any{"name": "u1.medium"},
		"spec":       map[string]any{"cpu": map[string]any{"guest": int64(1)}, "memory": map[string]any{"guest": "4Gi"}},
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		if _, err := controlplane.UpdateCRD(c.t.Context(), config, name, storeAt("v1beta1")); err != nil {
			c.t.Fatal(err)
		}
	}
}

func storeAt(version string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
		}
	}
}
