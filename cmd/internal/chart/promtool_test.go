package chart_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// monitoring is set by make test-monitoring, which compiles Prometheus first.
const monitoring = "GODWIT_TEST_MONITORING"

// prometheusProgram is a program of Prometheus. The test is skipped where make test runs it.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv(monitoring) == "" {
		t.Skip("make test-monitoring runs it")
	}
	path, err := filepath.Abs(filepath.Join(root, "bin", "prometheus", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("compile it with make prometheus: %v", err)
	}
	return path
}

// alertCase has series by which an alert fires, and others by which it does not.
type alertCase struct {
	component, alert string
	at               string // of both evaluations
	fires, quiet     []string
	labels           map[string]string // of the alert, besides those of its rule
	value            string            // as the description has it
}

const (
	migrator = "storage-version-migrator"
	ofPod    = `namespace="godwit",pod="godwit-storage-version-migrator-5d9c"`
)

// alertCases have a sample each minute: a+bxN is N samples after a, each b more, and _xN is N samples that are missing.
var alertCases = []alertCase{
	{
		component: migrator, alert: "GodwitDown", at: "30m", fires: []string{`up{` + ofPod + `} 0x60`},
		quiet:  []string{`up{` + ofPod + `} 1x60`, `up{namespace="shop",pod="web"} 0x60`, `up{namespace="godwit",pod="godwit-hub-agent-1"} 0x60`},
		labels: map[string]string{"namespace": "godwit", "pod": "godwit-storage-version-migrator-5d9c"},
	},
	{
		component: migrator, alert: "GodwitAbsent", at: "30m", fires: []string{`leader_election_master_status{name="theirs"} 1x60`},
		quiet: []string{`leader_election_master_status{name="godwit-storage-version-migrator"} 0x60`}, labels: map[string]string{"name": "godwit-storage-version-migrator"},
	},
	{
		component: "hub-agent", alert: "GodwitAbsent", at: "30m", fires: []string{`leader_election_master_status{name="godwit-hub-agent"} 1x60`},
		quiet: []string{`leader_election_master_status{name="godwit-agent"} 1x60`}, labels: map[string]string{"name": "godwit-agent"},
	},
	{
		component: migrator, alert: "GodwitNoLeader", at: "30m",
		fires:  []string{`leader_election_master_status{name="godwit-storage-version-migrator",pod="a"} 0x60`, `leader_election_master_status{name="godwit-storage-version-migrator",pod="b"} 0x60`},
		quiet:  []string{`leader_election_master_status{name="godwit-storage-version-migrator",pod="a"} 0x60`, `leader_election_master_status{name="godwit-storage-version-migrator",pod="b"} 1x60`},
		labels: map[string]string{"name": "godwit-storage-version-migrator"},
	},
	{
		component: migrator, alert: "GodwitReconcileErrors", at: "1h",
		fires:  []string{`controller_runtime_reconcile_errors_total{` + ofPod + `,controller="crdmigration"} 0+1x100`},
		quiet:  []string{`controller_runtime_reconcile_errors_total{` + ofPod + `,controller="crdmigration"} 7x100`, `controller_runtime_reconcile_errors_total{namespace="shop",pod="web",controller="cart"} 0+1x100`},
		labels: map[string]string{"controller": "crdmigration"},
	},
	{
		component: migrator, alert: "GodwitThrottled", at: "1h", fires: []string{`rest_client_requests_total{` + ofPod + `,code="429"} 0+60x100`},
		quiet:  []string{`rest_client_requests_total{` + ofPod + `,code="429"} 0+1x100`, `rest_client_requests_total{` + ofPod + `,code="200"} 0+600x100`},
		labels: map[string]string{"namespace": "godwit"}, value: "1",
	},
	{
		component: migrator, alert: "GodwitMigrationStalled", at: "30m",
		fires:  []string{`godwit_stalled_objects{kind="CRDMigration",name="widgets.example.com",reason="ObjectsFailed",pod="a"} 1x60`, `godwit_stalled_objects{kind="CRDMigration",name="widgets.example.com",reason="ObjectsFailed",pod="b"} 1x60`},
		quiet:  []string{`godwit_stalled_objects{kind="CRDMigration",name="widgets.example.com",reason="Blocked"} 1x60`, `godwit_stalled_objects{kind="ControllerRevisionUpgradeTrigger",name="all",reason="Forbidden"} 1x60`, `godwit_stalled_objects{kind="CRDMigration",name="short.example.com",reason="ObjectsFailed"} 1x10 _x50`},
		labels: map[string]string{"name": "widgets.example.com", "reason": "ObjectsFailed"},
	},
	{
		component: migrator, alert: "GodwitMigrationBlocked", at: "1h", fires: []string{`godwit_crd_blockers{crd="widgets.example.com",reason="ServerLeaseStale"} 1x100`},
		quiet: []string{`godwit_crd_blockers{crd="widgets.example.com",reason="ServerLeaseStale"} 1x20 _x80`}, labels: map[string]string{"crd": "widgets.example.com", "reason": "ServerLeaseStale"},
	},
	{
		component: migrator, alert: "GodwitMigrationFailing", at: "1h", fires: []string{`godwit_crd_migration_state{crd="widgets.example.com",state="Reconciling",reason="Failed"} 1x100`},
		quiet:  []string{`godwit_crd_migration_state{crd="widgets.example.com",state="Reconciling",reason="Migrating"} 1x100`, `godwit_crd_migration_state{crd="gears.example.com",state="Ready",reason="Succeeded"} 1x100`},
		labels: map[string]string{"crd": "widgets.example.com", "reason": "Failed"},
	},
	{
		component: migrator, alert: "GodwitObjectsFailed", at: "1h", fires: []string{`godwit_crd_objects_total{crd="widgets.example.com",outcome="failed"} 0+1x100`},
		quiet:  []string{`godwit_crd_objects_total{crd="widgets.example.com",outcome="failed"} 5x100`, `godwit_crd_objects_total{crd="widgets.example.com",outcome="migrated"} 0+9x100`},
		labels: map[string]string{"crd": "widgets.example.com"}, value: "30",
	},
	{
		// Prometheus sees no increase in a series whose first sample is 5.
		component: migrator, alert: "GodwitObjectsFailed", at: "1h", fires: []string{`godwit_crd_objects_total{crd="widgets.example.com",outcome="failed"} _x40 5x60`},
		quiet:  []string{`godwit_crd_objects_total{crd="widgets.example.com",outcome="failed"} _x40 0x60`, `godwit_crd_objects_total{crd="widgets.example.com",outcome="migrated"} _x40 5x60`},
		labels: map[string]string{"crd": "widgets.example.com"}, value: "5",
	},
	{
		component: migrator, alert: "GodwitMigrationNotProgressing", at: "3h",
		fires:  []string{`godwit_crd_migration_state{crd="widgets.example.com",state="Reconciling",reason="Migrating"} 1x300`, `godwit_crd_objects_remaining{crd="widgets.example.com"} 400x300`, `godwit_crd_objects_total{crd="widgets.example.com",outcome="migrated"} 600x300`},
		quiet:  []string{`godwit_crd_migration_state{crd="widgets.example.com",state="Reconciling",reason="Migrating"} 1x300`, `godwit_crd_objects_remaining{crd="widgets.example.com"} 400-1x300`, `godwit_crd_objects_total{crd="widgets.example.com",outcome="migrated"} 600+1x300`},
		labels: map[string]string{"crd": "widgets.example.com"},
	},
	{
		component: migrator, alert: "GodwitCRDNotMigrated", at: "30h", fires: []string{`godwit_crd_old_versions{crd="widgets.example.com",in_scope="true"} 2x2000`},
		quiet: []string{`godwit_crd_old_versions{crd="widgets.example.com",in_scope="true"} 2x600 _x1400`}, labels: map[string]string{"crd": "widgets.example.com"}, value: "2",
	},
	{
		component: migrator, alert: "GodwitCRDOutOfScope", at: "30h", fires: []string{`godwit_crd_old_versions{crd="gears.example.com",in_scope="false"} 1x2000`},
		quiet: []string{`godwit_crd_old_versions{crd="widgets.example.com",in_scope="true"} 1x2000`}, labels: map[string]string{"crd": "gears.example.com"}, value: "1",
	},
	{
		component: "revision-upgrader", alert: "GodwitRevisionTriggerStalled", at: "30m", fires: []string{`godwit_stalled_objects{kind="ControllerRevisionUpgradeTrigger",name="all",reason="UpgradesFailed"} 1x60`},
		quiet: []string{`godwit_stalled_objects{kind="ControllerRevisionUpgrade",object_namespace="shop",reason="Refused"} 3x60`}, labels: map[string]string{"name": "all", "reason": "UpgradesFailed"},
	},
	{
		component: "revision-upgrader", alert: "GodwitRevisionUpgradesStalled", at: "30m", fires: []string{`godwit_stalled_objects{kind="ControllerRevisionUpgrade",object_namespace="shop",reason="Refused"} 3x60`},
		quiet:  []string{`godwit_stalled_objects{kind="ControllerRevisionUpgrade",object_namespace="shop",reason="Refused"} 3x10 _x50`},
		labels: map[string]string{"object_namespace": "shop", "reason": "Refused"}, value: "3",
	},
	{
		component: "cluster-migration", alert: "GodwitClusterMigrationStalled", at: "30m", fires: []string{`godwit_stalled_objects{kind="ManagedClusterMigration",object_namespace="hubs",name="east",reason="Timeout"} 1x60`},
		quiet:  []string{`godwit_stalled_objects{kind="CRDMigration",name="widgets.example.com",reason="ObjectsFailed"} 1x60`},
		labels: map[string]string{"object_namespace": "hubs", "name": "east", "reason": "Timeout"},
	},
	{
		component: "cluster-migration", alert: "GodwitHubNotAnswering", at: "1h", fires: []string{`godwit_cluster_migration_commands_resent_total{hub="hub1"} 0+1x100`},
		quiet: []string{`godwit_cluster_migration_commands_resent_total{hub="hub1"} 0x30 1x70`}, labels: map[string]string{"hub": "hub1"},
	},
	{
		component: "cluster-migration", alert: "GodwitHubMessagesRefused", at: "50m", fires: []string{`godwit_cluster_migration_messages_refused_total{hub="hub1",reason="Signature"} 0x40 1x60`},
		quiet: []string{`godwit_cluster_migration_messages_refused_total{hub="hub1",reason="Signature"} 4x100`}, labels: map[string]string{"hub": "hub1", "reason": "Signature"},
	},
	{
		component: "hub-agent", alert: "GodwitAgentHeartbeatOld", at: "1h", fires: []string{`godwit_cluster_migration_agent_last_heartbeat_timestamp_seconds{namespace="godwit",pod="godwit-hub-agent-1"} 600x100`},
		quiet:  []string{`godwit_cluster_migration_agent_last_heartbeat_timestamp_seconds{namespace="godwit",pod="godwit-hub-agent-1"} 0+60x100`, `godwit_cluster_migration_agent_last_heartbeat_timestamp_seconds{namespace="godwit",pod="godwit-hub-agent-2"} 0x100`},
		labels: map[string]string{"namespace": "godwit"},
	},
	{
		component: "hub-agent", alert: "GodwitAgentMessagesRefused", at: "50m",
		fires:  []string{`godwit_cluster_migration_agent_messages_refused_total{namespace="godwit",pod="godwit-hub-agent-1",topic="spec",reason="Signature"} 0x40 1x60`},
		quiet:  []string{`godwit_cluster_migration_agent_messages_refused_total{namespace="godwit",pod="godwit-hub-agent-1",topic="spec",reason="Signature"} 1x100`},
		labels: map[string]string{"topic": "spec", "reason": "Signature"},
	},
}

// TestPromtoolRules: promtool accepts the alerts of each feature, and each alert fires and does not fire as it should.
func TestPromtoolRules(t *testing.T) {
	promtool := prometheusProgram(t, "promtool")
	for component, values := range features {
		t.Run(component, func(t *testing.T) {
			rules, file := rulesOf(t, render(t, "godwit", values+"\nmetrics: {prometheusRule: {enabled: true}}\n"))
			dir := t.TempDir()
			write(t, filepath.Join(dir, "rules.yaml"), file)
			tests := map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m"}
			var all []any
			for _, c := range alertCases {
				if c.component != component {
					continue
				}
				at := slices.IndexFunc(rules, func(r alertRule) bool { return r.Alert == c.alert })
				if at < 0 {
					t.Errorf("%s has no alert %s", component, c.alert)
					continue
				}
				all = append(all, c.evaluated(c.alert+" fires", c.fires, c.expected(t, rules[at])), c.evaluated(c.alert+" does not fire", c.quiet))
			}
			tests["tests"] = all
			mustCover(t, component, rules)
			text, err := yaml.Marshal(tests)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "tests.yaml"), text)
			for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
				command := exec.CommandContext(t.Context(), promtool, args...)
				command.Dir = dir
				out, err := command.CombinedOutput()
				if err != nil {
					t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				t.Logf("promtool %s: %s", strings.Join(args, " "), out)
			}
		})
	}
}

// mustCover: each alert of a feature has a case. Those of the process are the same for each feature.
func mustCover(t *testing.T, component string, rules []alertRule) {
	t.Helper()
	process := []string{"GodwitDown", "GodwitAbsent", "GodwitNoLeader", "GodwitReconcileErrors", "GodwitThrottled"}
	for _, r := range rules {
		tested := slices.ContainsFunc(alertCases, func(c alertCase) bool {
			return c.alert == r.Alert && (c.component == component || slices.Contains(process, r.Alert))
		})
		if !tested {
			t.Errorf("%s of %s has no case", r.Alert, component)
		}
	}
}

// evaluated is a test of promtool.
func (c alertCase) evaluated(name string, series []string, expected ...any) map[string]any {
	var input []any
	for _, s := range series {
		end := strings.LastIndex(s, "} ") + 1
		input = append(input, map[string]any{"series": s[:end], "values": s[end+1:]})
	}
	return map[string]any{
		"name": name, "interval": "1m", "input_series": input,
		"alert_rule_test": []any{map[string]any{"alertname": c.alert, "eval_time": c.at, "exp_alerts": append([]any{}, expected...)}},
	}
}

var (
	label = regexp.MustCompile(`\{\{ \$labels\.(\w+)( \| toLower)? \}\}`)
	value = regexp.MustCompile(`\{\{ \$value( \| humanize)? \}\}`)
)

// expected is the alert as Alertmanager gets it: its text names the objects.
func (c alertCase) expected(t *testing.T, r alertRule) any {
	t.Helper()
	labels := map[string]string{}
	for _, of := range []map[string]string{r.Labels, c.labels} {
		maps.Copy(labels, of)
	}
	annotations := map[string]string{}
	for name, text := range r.Annotations {
		text = label.ReplaceAllStringFunc(text, func(found string) string {
			parts := label.FindStringSubmatch(found)
			if parts[2] != "" {
				return strings.ToLower(labels[parts[1]])
			}
			return labels[parts[1]]
		})
		annotations[name] = value.ReplaceAllString(text, c.value)
		if strings.Contains(annotations[name], "{{") {
			t.Errorf("%s: %s is not expanded: %s", c.alert, name, annotations[name])
		}
	}
	return map[string]any{"exp_labels": labels, "exp_annotations": annotations}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
