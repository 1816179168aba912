package guide_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
)

// TestGuideToFleets runs the guide on two clusters, of which the second is blocked at first.
func TestGuideToFleets(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	second := controlplane.Options{}.StartFor(t)
	there, err := filepath.Abs(filepath.Join(root, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	c.link(there, filepath.Join(c.dir, "docs"))
	storedOld(t, c.plane.Config(), "widgets", true)
	storedOld(t, second.Config(), "sprockets", false)
	kubeconfig := filepath.Join(t.TempDir(), "fleet")
	if err := controlplane.WriteContexts(kubeconfig, "canary", map[string]*rest.Config{"canary": c.plane.Config(), "east": second.Config()}); err != nil {
		t.Fatal(err)
	}
	if commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join(root, "docs", "guides", "fleet.md"), Dir: c.dir, Env: append(c.env, "KUBECONFIG="+kubeconfig, "RUN_FLAGS=--settle=1s"),
		Placeholders: map[string]string{"CANARY": "canary", "EAST": "east"},
	}); err != nil || commands < 10 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}
	for _, page := range []string{"plan.html", "pages/canary.html", "pages/canary.json", "pages/east.html", "pages/east.json"} {
		if info, err := os.Stat(filepath.Join(c.dir, page)); err != nil || info.Size() == 0 {
			t.Errorf("the guide leaves no %s: %v", page, err)
		}
	}
}

// TestWave runs the script of the guide with a godwit whose exit codes the case chooses.
func TestWave(t *testing.T) {
	const see = "east: stopped: see godwit plan --contexts=east\n"
	cases := map[string]struct {
		reason string
		// codes of the plan before, the run, the plan after, and the plan of the CRDs alone
		before, ran, after, crds int
		want                     string
	}{
		"clean":             {"nothing is left", 0, 0, 0, 0, "east: clean\nwest: clean\n"},
		"work":              {"the run does it", 1, 0, 0, 0, "east: clean\nwest: clean\n"},
		"blocked at first":  {"the run may not meet it", 3, 0, 0, 0, "east: clean\nwest: clean\n"},
		"not read":          {"what was not read is not clean", 2, 0, 0, 0, "east: stopped: not all of it can be read: see godwit plan --contexts=east\n"},
		"run refused":       {"the next cluster may be like this one", 1, 3, 3, 3, see},
		"run incomplete":    {"objects are left", 1, 4, 1, 1, see},
		"ready references":  {"a role that names an old version beside the new one is in no way", 1, 0, 1, 0, "east: the CRDs are clean; for the rest see godwit plan --contexts=east\nwest: the CRDs are clean; for the rest see godwit plan --contexts=west\n"},
		"CRDs are ready":    {"another client has changed them since the run", 1, 0, 1, 1, see},
		"blocked afterward": {"something does not work", 1, 0, 3, 0, see},
		"not read again":    {"what was not read is not clean", 1, 0, 2, 0, see},
	}
	script, err := filepath.Abs(filepath.Join(root, "docs", "guides", "fleet", "wave.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fake := fmt.Sprintf(`#!/bin/sh
for a; do case $a in --file=*) echo "{}" >"${a#--file=}" ;; esac; done
case "$*" in
version*) exit 0 ;;
*1-plan.json) exit %d ;;
"crd run"*) exit %d ;;
*3-after.json) exit %d ;;
"crd plan"*) exit %d ;;
esac
exit 99
`, c.before, c.ran, c.after, c.crds)
			for file, text := range map[string]string{"godwit": fake, "wave": "east\n\nwest"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			wave := exec.CommandContext(t.Context(), "bash", script, "wave", "evidence")
			wave.Dir, wave.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := wave.CombinedOutput()
			if diff := cmp.Diff(c.want, string(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if stopped := strings.Contains(c.want, "stopped"); (err != nil) != stopped {
				t.Errorf("%s: error %v, want one: %v", c.reason, err, stopped)
			}
			if _, err := os.Stat(filepath.Join(dir, "evidence", "east", "1-plan.json")); (err != nil) != (c.before == 2) {
				t.Errorf("the state before: %v", err)
			}
		})
	}
}

// storedOld creates a CRD whose storage version has moved from v1 to v2.
func storedOld(t *testing.T, config *rest.Config, plural string, served bool) {
	t.Helper()
	const group = "example.com"
	open := true
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}}
	version := func(name string, stored, served bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Storage: stored, Served: served, Schema: schema}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Kind" + plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, true), version("v2", false, true)},
		},
	}
	if err := controlplane.InstallCRDs(t.Context(), config, crd); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	if _, err := controlplane.UpdateCRD(ctx, config, crd.Name, func(c *apiextensionsv1.CustomResourceDefinition) {
		c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false, true), version("v2", true, served)}
	}); err != nil {
		t.Fatal(err)
	}
}
