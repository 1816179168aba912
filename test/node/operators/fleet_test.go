package operators_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/node/operators/content"
)

const (
	fleet = "fleet"
	// clusters is how many Clusters there are, each with Machines and what manages them.
	clusters   = 30
	coreGroup  = "cluster.x-k8s.io"
	addonGroup = "addons.cluster.x-k8s.io"
	infraGroup = "infrastructure.cluster.x-k8s.io"
)

var coreKinds = []string{"Cluster", "MachineDeployment", "MachineSet", "Machine", "MachinePool", "MachineHealthCheck"}

// installInfrastructure installs CRDs as a provider has them, to which the conversion of references looks.
func (s *stage) installInfrastructure() {
	s.t.Helper()
	for _, kind := range []string{"GenericCluster", "GenericMachine", "GenericMachineTemplate", "GenericMachinePool"} {
		plural := strings.ToLower(kind) + "s"
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + infraGroup, Labels: map[string]string{
				"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1", "cluster.x-k8s.io/provider": "infrastructure-generic",
			}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: infraGroup, Scope: apiextensionsv1.NamespaceScoped,
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{geese{}.version("v1beta1", true)},
			},
		}
		if err := controlplane.InstallCRDs(s.t.Context(), s.Config(), crd); err != nil {
			s.t.Fatal(err)
		}
	}
}

func infrastructure(kind, name string) map[string]any {
	return map[string]any{"apiVersion": infraGroup + "/v1beta1", "kind": kind, "name": name, "namespace": fleet}
}

// fillFleet makes objects of each kind. The Clusters are paused, so that no controller looks for machines.
func (s *stage) fillFleet() {
	s.t.Helper()
	create := func(group, kind, name string, spec map[string]any) {
		s.t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetAPIVersion(group + "/v1beta1")
		o.SetKind(kind)
		o.SetNamespace(fleet)
		o.SetName(name)
		o.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "cluster"})
		s.await("the creation of "+kind+" "+name, func(ctx context.Context) error { return s.Create(ctx, o) })
	}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%02d", i)
		labels := map[string]any{"pool": name}
		machine := map[string]any{
			"clusterName": name, "version": "v1.32.0", "bootstrap": map[string]any{"dataSecretName": "bootstrap"},
			"infrastructureRef": infrastructure("GenericMachineTemplate", name), "nodeDrainTimeout": "1m0s",
		}
		template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": machine}
		create(coreGroup, "Cluster", name, map[string]any{
			"paused": true, "clusterNetwork": map[string]any{"pods": map[string]any{"cidrBlocks": []any{"10.1.0.0/16"}}},
			"controlPlaneEndpoint": map[string]any{"host": name + ".example.com", "port": int64(6443)},
			"infrastructureRef":    infrastructure("GenericCluster", name),
		})
		create(coreGroup, "MachineDeployment", name, map[string]any{
			"clusterName": name, "replicas": int64(3), "selector": map[string]any{"matchLabels": labels}, "template": template,
		})
		create(coreGroup, "MachineSet", name, map[string]any{
			"clusterName": name, "replicas": int64(3), "selector": map[string]any{"matchLabels": labels}, "template": template,
		})
		for j := range 2 {
			own := runtime.DeepCopyJSON(machine)
			own["infrastructureRef"] = infrastructure("GenericMachine", name)
			create(coreGroup, "Machine", fmt.Sprintf("%s-%d", name, j), own)
		}
		pool := runtime.DeepCopyJSON(template)
		pool["spec"].(map[string]any)["infrastructureRef"] = infrastructure("GenericMachinePool", name)
		create(coreGroup, "MachinePool", name, map[string]any{"clusterName": name, "replicas": int64(2), "template": pool})
		create(coreGroup, "MachineHealthCheck", name, map[string]any{
			"clusterName": name, "selector": map[string]any{"matchLabels": labels}, "maxUnhealthy": "40%", "nodeStartupTimeout": "10m0s",
			"unhealthyConditions": []any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "5m0s"}},
		})
		create(addonGroup, "ClusterResourceSet", name, map[string]any{
			"clusterSelector": map[string]any{"matchLabels": labels}, "strategy": "ApplyOnce",
			"resources": []any{map[string]any{"kind": "ConfigMap", "name": name}},
		})
	}
}

// fleetAt reads all objects of the fleet at a version.
func (s *stage) fleetAt(version string) content.Snapshot {
	s.t.Helper()
	all := s.snapshotOf(s.t.Context(), schema.GroupVersion{Group: coreGroup, Version: version}, coreKinds...)
	maps.Copy(all, s.snapshotOf(s.t.Context(), schema.GroupVersion{Group: addonGroup, Version: version}, "ClusterResourceSet"))
	return all
}
