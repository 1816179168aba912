package chart_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/operator"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

func TestChartLint(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", chartDir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestChartRendersAsBefore for each testdata/NAME.values.yaml. The CRDs are
// left out: another test compares them with those of the API.
func TestChartRendersAsBefore(t *testing.T) {
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files with values, want some: %v", len(files), err)
	}
	for _, file := range files {
		prefix := strings.TrimSuffix(file, ".values.yaml")
		t.Run(filepath.Base(prefix), func(t *testing.T) {
			got := mustHelm(t, "template", "godwit", chartDir, "--namespace=godwit", "--values="+file, "--set=crds.enabled=false")
			decode(t, got)
			golden := prefix + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got), or make chart TEST_FLAGS=\"-args -update\":\n%s", golden, diff)
			}
		})
	}
}

func TestChartHasTheCRDsOfTheAPI(t *testing.T) {
	var want []*unstructured.Unstructured
	files, err := filepath.Glob(root + "/api/v1alpha1/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs, want some: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, decode(t, string(text))...)
	}
	const nothingElse = "operator: {features: {storageVersionMigrator: false}}\n"
	for keep, values := range map[bool]string{true: "", false: "crds: {keep: false}\n"} {
		got := render(t, "godwit", nothingElse+values)
		for _, o := range got {
			annotations := o.GetAnnotations()
			if kept := annotations["helm.sh/resource-policy"] == "keep"; kept != keep {
				t.Errorf("%s: %v, want it kept: %v", name(o), annotations, keep)
			}
			delete(annotations, "helm.sh/resource-policy")
			o.SetAnnotations(annotations)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-api +chart):\n%s", values, diff)
		}
	}
	// Another project has a CRD of this name, so that it comes with its feature alone.
	hubCRD := slices.ContainsFunc(render(t, "godwit", "operator: {features: {storageVersionMigrator: false, clusterMigration: true}}\nclusterMigration: {kafka: {brokers: ['kafka:9092']}}"),
		func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "CustomResourceDefinition" && o.GetName() == hubapi.CRDName && o.GetAnnotations()[hubapi.OwnerAnnotation] == hubapi.Owner
		})
	if !hubCRD {
		t.Errorf("the feature comes without CRD %s", hubapi.CRDName)
	}
	if got := render(t, "godwit", nothingElse+"crds: {enabled: false}\n"); len(got) > 0 {
		t.Errorf("with nothing enabled there are %v", got)
	}
}

// TestChartRefusesBadValues with a sentence for the user who wrote them.
func TestChartRefusesBadValues(t *testing.T) {
	for values, want := range map[string]string{
		"operator: {featurs: {}}":                                                                  "at '/operator': additional properties 'featurs' not allowed",
		"operator: {features: {storageVersionMigrater: true}}":                                     "at '/operator/features': additional properties 'storageVersionMigrater' not allowed",
		"operator: {features: {storageVersionMigrator: maybe}}":                                    "at '/operator/features/storageVersionMigrator': got string, want boolean",
		"operator: {env: [{name: A, value: true}]}":                                                "at '/operator/env/0/value': got boolean, want string",
		"operator: {env: [{name: A, value: a}, {name: A, value: b}]}":                              "operator.env: two entries are named A: leave one out",
		"operator: {replicas: -1}":                                                                 "at '/operator/replicas': minimum: got -1, want 0",
		"storageVersionMigrator: {defaults: {write: put}}":                                         "at '/storageVersionMigrator/defaults/write': value must be one of 'Patch', 'StatusPatch', 'Update', 'Apply', 'StatusApply'",
		"storageVersionMigrator: {defaults: {suspend: true}}":                                      "at '/storageVersionMigrator/defaults': additional properties 'suspend' not allowed",
		"storageVersionMigrator: {defaults: {phases: [Cleanup]}}":                                  "value must be one of 'StorageVersionMigration', 'CleanupManagedFields'",
		"storageVersionMigrator: {defaults: {settle: -5s}}":                                        `storageVersionMigrator.defaults.settle: "-5s" is not a valid duration: write it as in 75s or 2m`,
		"storageVersionMigrator: {scopes: [{}]}":                                                   "storageVersionMigrator.scopes[0]: an empty scope would mean every CRD of the cluster: name a group, labels or both",
		"storageVersionMigrator: {scopes: [{group: a.example.com}, {labelSelector: {}}]}":          "storageVersionMigrator.scopes[1]: an empty scope",
		"storageVersionMigrator: {scopes: [{labelSelector: {matchLabels: {}}}]}":                   "storageVersionMigrator.scopes[0]: an empty scope",
		"storageVersionMigrator: {scopes: [{group: example.com, labels: {a: b}}]}":                 "at '/storageVersionMigrator/scopes/0': additional properties 'labels' not allowed",
		"storageVersionMigrator: {scopes: [{group: Widgets}]}":                                     `"Widgets" is not an API group of custom resources: write it as in example.com`,
		"storageVersionMigrator: {rbac: {groups: ['*']}}":                                          `"*" is not an API group of custom resources: write it as in example.com; every group is rbac.allGroups: true`,
		"storageVersionMigrator:":                                                                  "missing property 'storageVersionMigrator'",
		"operator: {features: {clusterMigration: true}}":                                           "clusterMigration.kafka.brokers: no broker is named: name at least one as HOST:PORT",
		"operator: {features: {clusterMigration: true, hubAgent: true}}":                           "install them as two releases in two namespaces",
		"operator: {features: {hubAgent: true}}\nhubAgent: {kafka: {brokers: ['k:1']}}":            "hubAgent.hub: name the ManagedCluster that this hub is on the global hub",
		"operator: {features: {hubAgent: true}}\nhubAgent: {hub: hub1, kafka: {brokers: ['k:1']}}": "hubAgent.managerKey: give the key of the manager",
		"clusterMigration: {kafka: {broker: [a]}}":                                                 "additional properties 'broker' not allowed",
		"limits: {maxInFlight: -1}":                                                                "at '/limits/maxInFlight': minimum: got -1, want 0",
		"limits: {maxBytesPerFiveMinutes: lots}":                                                   `limits.maxBytesPerFiveMinutes: "lots" is not an amount of bytes: write it as in 512Mi, or 0 for no limit`,
		"limits: {maxBytesPerFiveMinutes: -1}":                                                     "at '/limits/maxBytesPerFiveMinutes': minimum: got -1, want 0",
		"metrics: {serviceMonitor: {enabled: true}}":                                               "metrics.serviceMonitor: how does Prometheus verify the certificate of the metrics? Name a Secret with a certificate for godwit-metrics.default.svc in metrics.tls.secretName, or set metrics.tls.certManager.enabled",
		"metrics: {tls: {certManager: {enabled: true, issuerRef: {kind: Issuer}}}}":                "metrics.tls.certManager.issuerRef: name the issuer",
		"metrics: {prometheusRule: {disabled: [GodwitDwn]}}":                                       `metrics.prometheusRule.disabled: there is no alert "GodwitDwn": there are GodwitAbsent, GodwitAgent`,
		"operator: {overrides: {revisionUpgrader: {replicas: 2}}}":                                 "at '/operator/overrides/revisionUpgrader': additional properties 'replicas' not allowed",
		"operator: {overrides: {upgrader: {}}}":                                                    "at '/operator/overrides': additional properties 'upgrader' not allowed",
		"metrics: {podMonitor: {enabled: 'true'}}":                                                 "at '/metrics/podMonitor/enabled': got string, want boolean",

		"storageVersionMigrator: {defaults: {phases: [CleanupManagedFields], trim: true}}": "storageVersionMigrator.defaults.trim: true needs the phase StorageVersionMigration",
	} {
		t.Run(values, func(t *testing.T) {
			_, err := helm(t, "template", "godwit", chartDir, valuesFile(t, values))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it said %v, want %q", err, want)
			}
		})
	}
}

// TestChartConfigurationIsUnderstood by the binary, which is strict.
func TestChartConfigurationIsUnderstood(t *testing.T) {
	for _, values := range []string{
		"",
		"limits: {maxInFlight: 2000000, maxWritesPerSecond: 0.5, maxBytesPerFiveMinutes: 536870912}",
		"limits: {maxBytesPerFiveMinutes: 1.5Gi}",
		"operator: {features: {storageVersionMigrator: false, clusterMigration: true}}\nclusterMigration: {kafkaSecret: kafka, kafka: {brokers: ['kafka:9092'], ca: /etc/kafka/ca.crt, plaintext: false}}",
		"storageVersionMigrator: {defaults: {phases: [CleanupManagedFields], write: Update, settle: 1m30s, trim: false, maxInFlight: 3, maxWritesPerSecond: 100000}}",
		"storageVersionMigrator: {scopes: [{group: example.com, labelSelector: {}}, {labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}]}",
	} {
		dir := t.TempDir()
		mount(t, find[corev1.ConfigMap](t, render(t, "godwit", values), "ConfigMap"), dir)
		if _, err := operator.ReadConfiguration(filepath.Join(dir, "config.yaml")); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestConfigurationChangesWithThePermissions: with other permissions the pod is
// another one, and looks anew at what it was forbidden to list.
func TestConfigurationChangesWithThePermissions(t *testing.T) {
	seen := map[string]string{}
	for _, values := range []string{
		"",
		"storageVersionMigrator: {rbac: {groups: [a.example.com]}}",
		"storageVersionMigrator: {rbac: {groups: [a.example.com, b.example.com]}}",
		"storageVersionMigrator: {rbac: {groups: [a.example.com], writes: [Update]}}",
		"storageVersionMigrator: {rbac: {groups: [a.example.com], writes: [StatusPatch]}}",
		"storageVersionMigrator: {rbac: {allGroups: true}}",
	} {
		objects := render(t, "godwit", values)
		checksum := find[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Annotations["checksum/config"]
		if other, ok := seen[checksum]; ok || checksum == "" {
			t.Errorf("%q and %q have the same pod, with checksum %q", values, other, checksum)
		}
		seen[checksum] = values
		dir := t.TempDir()
		mount(t, find[corev1.ConfigMap](t, objects, "ConfigMap"), dir)
		if _, err := operator.ReadConfiguration(filepath.Join(dir, "config.yaml")); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestChartRolesAreThoseOfTheBinary: what `godwit rbac` prints for the same groups
// and writes.
func TestChartRolesAreThoseOfTheBinary(t *testing.T) {
	for _, test := range []struct {
		values    string
		namespace string
		feature   string
		groups    []string
		writes    []decision.Write
	}{
		{},
		{namespace: "kube-system"},
		{
			values:  "operator: {features: {storageVersionMigrator: false, revisionUpgrader: true}}\nrevisionUpgrader: {scanEvery: 1h}",
			feature: operator.RevisionUpgrader,
		},
		{
			values:  "operator: {features: {storageVersionMigrator: false, clusterMigration: true}}\nclusterMigration: {kafka: {brokers: ['kafka:9092']}}",
			feature: operator.ClusterMigration,
		},
		{namespace: "default"},
		{values: "storageVersionMigrator: {rbac: {groups: [b.example.com, a.example.com]}}", groups: []string{"a.example.com", "b.example.com"}},
		{values: "storageVersionMigrator: {scopes: [{group: b.example.com}, {labelSelector: {matchLabels: {c: d}}}], rbac: {groups: [a.example.com, b.example.com]}}", groups: []string{"a.example.com", "b.example.com"}},
		{values: "storageVersionMigrator: {scopes: [{group: example.com}], rbac: {allGroups: true}}", groups: []string{"*"}},
		{values: "storageVersionMigrator: {defaults: {write: Update}, rbac: {groups: [example.com]}}", groups: []string{"example.com"}, writes: []decision.Write{decision.WriteUpdate}},
		{values: "storageVersionMigrator: {defaults: {write: StatusPatch}, rbac: {groups: [example.com]}}", groups: []string{"example.com"}, writes: []decision.Write{decision.WriteStatusPatch}},
		{values: "storageVersionMigrator: {defaults: {write: Apply}, rbac: {groups: [example.com]}}", groups: []string{"example.com"}, writes: []decision.Write{decision.WriteApply}},
		{
			values: "storageVersionMigrator: {rbac: {groups: [example.com], writes: [StatusApply, Update]}}", groups: []string{"example.com"},
			writes: []decision.Write{decision.WriteUpdate, decision.WriteStatusApply},
		},
	} {
		namespace := test.namespace
		if namespace == "" {
			namespace = "godwit"
		}
		objects := render(t, namespace, test.values)
		account := find[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec.ServiceAccountName
		got := map[string]any{}
		for _, o := range objects {
			if o.GroupVersionKind().Group == rbacv1.GroupName && o.GetName() == account {
				o.SetLabels(nil)
				got[name(o)] = o.Object
			}
		}
		rights := operator.Rights{Namespace: namespace, ServiceAccount: account, Feature: test.feature, Groups: test.groups, Writes: test.writes}
		if diff := cmp.Diff(asMaps(t, rights.Objects()), got); diff != "" {
			t.Errorf("%s in %s: (-binary +chart):\n%s", test.values, namespace, diff)
		}
	}
}

// TestChartRolesOfTheAgent are those that `godwit rbac --for=hub-agent` prints.
func TestChartRolesOfTheAgent(t *testing.T) {
	objects := decode(t, mustHelm(t, "template", "godwit", chartDir, "--namespace=agents", "--values=testdata/hubagent.values.yaml"))
	want := map[string][]rbacv1.PolicyRule{}
	for _, r := range permission.Roles(clusterpermission.Agent.Permissions(permission.Scope{Namespace: "agents"})) {
		want[r.Namespace] = r.Rules
	}
	got := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		if kind := o.GetKind(); o.GetName() != "godwit-hub-agent" || kind != "Role" && kind != "ClusterRole" {
			continue
		}
		role := &rbacv1.Role{} // or a ClusterRole, which looks the same
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		got[o.GetNamespace()] = role.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules by namespace (-binary +chart):\n%s", diff)
	}
}

func asMaps(t *testing.T, objects []client.Object) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		all[name(u)] = u.Object
	}
	return all
}

// TestChartEnvironment: server-side apply refuses two entries of one name.
func TestChartEnvironment(t *testing.T) {
	const moves, off = operator.EnableClusterMigration + "=false", operator.EnableRevisionUpgrader + "=false"
	for values, want := range map[string][]string{
		"": {moves, off, operator.EnableVariable + "=true"},
		"operator: {env: [{name: GOMAXPROCS, value: '2'}]}":                       {moves, off, operator.EnableVariable + "=true", "GOMAXPROCS=2"},
		"operator: {env: [{name: " + operator.EnableVariable + ", value: 'no'}]}": {moves, off, operator.EnableVariable + "=no"},
	} {
		var got []string
		for _, e := range find[appsv1.Deployment](t, render(t, "godwit", values), "Deployment").Spec.Template.Spec.Containers[0].Env {
			got = append(got, e.Name+"="+e.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", values, got, want)
		}
	}
}

func TestChartNotes(t *testing.T) {
	for values, want := range map[string]string{
		"": "MISSING: it may not write custom resources yet, except those of godwit.dev.",
		"storageVersionMigrator: {scopes: [{group: example.com}]}":              "It may write custom resources of example.com and godwit.dev.",
		"storageVersionMigrator: {rbac: {allGroups: true}}":                     "It may list and patch every object of the cluster.",
		"operator: {features: {storageVersionMigrator: false}}":                 "The storage version migrator is disabled.",
		"storageVersionMigrator: {scopes: [{group: e.org, labelSelector: {}}]}": "of group e.org with labels that match {}",
	} {
		out := mustHelm(t, "install", "godwit", chartDir, "--dry-run=client", valuesFile(t, values))
		if _, notes, _ := strings.Cut(out, "\nNOTES:\n"); !strings.Contains(notes, want) {
			t.Errorf("%s: want %q in\n%s", values, want, notes)
		}
	}
}

// TestChartOfReadme: the manager that README installs may migrate the API groups of its command.
func TestChartOfReadme(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`helm (install godwit [^`]*)`").FindStringSubmatch(string(text))
	if len(found) == 0 || !strings.Contains(found[1], published) {
		t.Fatalf("README installs no chart of a release: %q", found)
	}
	args := strings.Fields(strings.NewReplacer(published, chartDir, "'", "").Replace(found[1]))
	out := mustHelm(t, append(args, "--dry-run=client")...)
	if _, notes, _ := strings.Cut(out, "\nNOTES:\n"); !strings.Contains(notes, "It may write custom resources of example.com") {
		t.Errorf("README installs a manager without permissions:\n%s", notes)
	}
}
