package klusterlet

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"
)

// TestStages compares the ManifestWork of each stage with testdata/stages.txt: what is applied, what is only read, and what stays when the
// ManifestWork goes. UPDATE=1 writes the file.
func TestStages(t *testing.T) {
	t.Parallel()
	const file = "testdata/stages.txt"
	f := Facts{Namespace: "agents", Hub: []byte(agentKubeconfig), Gates: []operatorv1.FeatureGate{{Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable}}}
	var text strings.Builder
	for _, c := range []struct {
		title string
		facts Facts
		Config
	}{
		{"Reading, before the namespace is known", Facts{}, Config{Stage: Reading}},
		{"Reading", f, Config{Stage: Reading}},
		{"TwoHubs", f, Config{Stage: TwoHubs, Source: []byte("source"), Target: []byte("target"), Reconnect: 3 * time.Minute}},
		{"Restored", f, Config{Stage: Restored}},
		{"Handover", f, Config{Stage: Handover, Own: []byte("own")}},
		{"OneHub", f, Config{Stage: OneHub, Own: []byte("own")}},
	} {
		spec, err := specOf(c.facts, c.Config)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "# %s\n%s\n", c.title, describe(t, spec))
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("the stages (-golden +got):\n%s", diff)
	}
}

func describe(t *testing.T, spec workv1.ManifestWorkSpec) string {
	t.Helper()
	var text strings.Builder
	for _, m := range spec.Workload.Manifests {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Spec     any
			Rules    any
		}
		if err := json.Unmarshal(m.Raw, &o); err != nil {
			t.Fatal(err)
		}
		strategy := "Update"
		for _, c := range spec.ManifestConfigs {
			if c.ResourceIdentifier.Name == o.Metadata.Name && c.ResourceIdentifier.Namespace == o.Metadata.Namespace {
				strategy = string(c.UpdateStrategy.Type)
			}
		}
		stays := ""
		if slices.ContainsFunc(spec.DeleteOption.SelectivelyOrphan.OrphaningRules, func(r workv1.OrphaningRule) bool {
			return r.Name == o.Metadata.Name && r.Namespace == o.Metadata.Namespace
		}) {
			stays = ", stays"
		}
		fmt.Fprintf(&text, "%s %s (%s%s)\n", o.Kind, o.Metadata.Name, strategy, stays)
		for _, part := range []any{o.Spec, o.Rules} {
			if part == nil {
				continue
			}
			lines, err := yaml.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(lines)) {
				text.WriteString("  " + line)
			}
		}
	}
	return text.String()
}

// TestEachStageIsReproducible: a pass that is repeated writes nothing.
func TestEachStageIsReproducible(t *testing.T) {
	t.Parallel()
	f := Facts{Namespace: "agents"}
	c := Config{Stage: TwoHubs, Source: []byte("source"), Target: []byte("target")}
	first, err := specOf(f, c)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := specOf(f, c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	}
}
