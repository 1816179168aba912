package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// chartFile is what Chart.yaml has for people.
type chartFile struct {
	AppVersion, Icon string
	Maintainers      []struct{ Name, URL string }
	Annotations      map[string]string
}

// chartCRDs are the CRDs of the chart, by name.
func chartCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(chartDir + "/files/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		crds[crd.Name] = crd
	}
	return crds
}

// TestChartMetadata: what Artifact Hub shows is in the chart and in the repository.
func TestChartMetadata(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c chartFile
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	const files = "https://raw.githubusercontent.com/godwit-dev/godwit/main/"
	icon, found := strings.CutPrefix(c.Icon, files)
	if _, err := os.Stat(filepath.Join(root, icon)); !found || err != nil {
		t.Errorf("icon %q: %v", c.Icon, err)
	}
	if len(c.Maintainers) != 1 || c.Maintainers[0].Name == "" || c.Maintainers[0].URL == "" {
		t.Errorf("maintainers %v", c.Maintainers)
	}
	var images []struct{ Name, Image string }
	if err := yaml.Unmarshal([]byte(c.Annotations["artifacthub.io/images"]), &images); err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 || images[0].Image != "ghcr.io/godwit-dev/godwit:v"+c.AppVersion {
		t.Errorf("images %v", images)
	}
	var kinds []struct{ Kind, Version, Name, DisplayName, Description string }
	if err := yaml.Unmarshal([]byte(c.Annotations["artifacthub.io/crds"]), &kinds); err != nil {
		t.Fatal(err)
	}
	crds := chartCRDs(t)
	for _, k := range kinds {
		crd := crds[k.Name]
		if crd == nil || crd.Spec.Names.Kind != k.Kind || crd.Spec.Versions[0].Name != k.Version || k.DisplayName == "" || k.Description == "" {
			t.Errorf("%+v is not a CRD of the chart", k)
		}
		delete(crds, k.Name)
	}
	if len(crds) > 0 {
		t.Errorf("Artifact Hub does not show %v", slices.Collect(maps.Keys(crds)))
	}
	for key, value := range c.Annotations {
		var document any
		if err := yaml.UnmarshalStrict([]byte(value), &document); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestAggregatedRoles: users with view and edit see and write the kinds of the chart, except ManagedClusterMigrations.
func TestAggregatedRoles(t *testing.T) {
	const moves = "clusterMigration: {kafka: {brokers: ['kafka:9092']}}\noperator: {features: {clusterMigration: true}}"
	roles := func(values string) map[string]*rbacv1.ClusterRole {
		found := map[string]*rbacv1.ClusterRole{}
		for _, o := range render(t, "godwit", values) {
			for label := range o.GetLabels() {
				if !strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
					continue
				}
				role := &rbacv1.ClusterRole{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				found[strings.TrimPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")+" "+role.Name] = role
			}
		}
		return found
	}
	got := roles(moves)
	if diff := cmp.Diff([]string{"admin godwit-edit", "admin godwit-view", "edit godwit-edit", "edit godwit-view", "view godwit-view"}, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("roles (-want +got):\n%s", diff)
	}
	for name, crd := range chartCRDs(t) {
		may := func(role, verb string) bool {
			return slices.ContainsFunc(got[role].Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, crd.Spec.Group) && slices.Contains(r.Resources, crd.Spec.Names.Plural) && slices.Contains(r.Verbs, verb)
			})
		}
		if !may("view godwit-view", "list") || may("view godwit-view", "patch") {
			t.Errorf("view of %s: %v", name, got["view godwit-view"].Rules)
		}
		if writes := may("edit godwit-edit", "patch"); writes == (crd.Spec.Names.Kind == "ManagedClusterMigration") {
			t.Errorf("edit of %s: %t", name, writes)
		}
	}
	for _, values := range []string{"rbac: {aggregate: false}", "operator: {features: {storageVersionMigrator: false}}"} {
		if got := roles(values); len(got) > 0 {
			t.Errorf("%s: %v", values, slices.Collect(maps.Keys(got)))
		}
	}
}

// TestReplicasSpread: several replicas prefer different nodes and zones, unless the values say where they are.
func TestReplicasSpread(t *testing.T) {
	for values, want := range map[string]struct{ affinity, spread string }{
		"operator: {replicas: 1}":                               {},
		"operator: {replicas: 2}":                               {"kubernetes.io/hostname", "topology.kubernetes.io/zone"},
		"operator: {replicas: 2, affinity: {nodeAffinity: {}}}": {"", "topology.kubernetes.io/zone"},
		"operator: {replicas: 2, topologySpreadConstraints: [{maxSkew: 1, topologyKey: x, whenUnsatisfiable: ScheduleAnyway}]}": {"kubernetes.io/hostname", "x"},
		"operator: {replicas: 2, overrides: {storageVersionMigrator: {affinity: {}, topologySpreadConstraints: []}}}":           {},
	} {
		pod := find[appsv1.Deployment](t, render(t, "godwit", values), "Deployment").Spec.Template
		var affinity, spread string
		if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			term := a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
			affinity = term.TopologyKey
			if !maps.Equal(term.LabelSelector.MatchLabels, pod.Labels) {
				t.Errorf("%s: the pods avoid %v, and have %v", values, term.LabelSelector.MatchLabels, pod.Labels)
			}
		}
		if s := pod.Spec.TopologySpreadConstraints; len(s) > 0 {
			spread = s[0].TopologyKey
			if s[0].WhenUnsatisfiable != corev1.ScheduleAnyway || !maps.Equal(s[0].LabelSelector.MatchLabels, pod.Labels) {
				t.Errorf("%s: %+v", values, s[0])
			}
		}
		if affinity != want.affinity || spread != want.spread {
			t.Errorf("%s: %q and %q, want %q and %q", values, affinity, spread, want.affinity, want.spread)
		}
	}
}
