package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/crdmigrator/bridge"
)

// TestScriptAgain: a step applies its manifest while the CRD has an old version, and not after the script has removed them.
func TestScriptAgain(t *testing.T) {
	widgets := release{steps: bridge.Bridge{RemovedVersions: []string{"v1alpha1", "v1beta1"}, Steps: []bridge.Step{
		{Kind: bridge.Serve, Manifest: &apiextensionsv1.CustomResourceDefinition{}},
	}}}
	widgets.Name = "widgets.example.com"
	for name, c := range map[string]struct {
		reason   string
		versions string
		want     string
		fails    bool
	}{
		"first run":      {reason: "the CRD has all versions", versions: "v1alpha1 v1beta1 v1", want: "get apply"},
		"resumed":        {reason: "an old version is left", versions: "v1beta1 v1", want: "get apply"},
		"after the end":  {reason: "the manifest would serve old versions again", versions: "v1", want: "get"},
		"longer name":    {reason: "v1beta10 is not v1beta1", versions: "v1beta10 v1", want: "get"},
		"no API server":  {reason: "the script cannot know", versions: "", want: "get", fails: true},
		"a next release": {reason: "it has further versions", versions: "v1 v2", want: "get"},
	} {
		dir := t.TempDir()
		write := func(file, text string) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		// The server test runs the script with kubectl. Here a program answers in its place, and notes the command.
		write("kubectl", "#!/bin/sh\necho $1 >>commands\n[ $1 != get ] || echo $VERSIONS | grep .\n")
		write(script, scriptOf([]release{widgets}, "godwit", ""))
		run := exec.Command("sh", script, "serve")
		run.Dir, run.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "VERSIONS=" + c.versions}
		out, err := run.CombinedOutput()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v, want a failure: %t: %s\n%s", name, err, c.fails, c.reason, out)
		}
		commands, err := os.ReadFile(filepath.Join(dir, "commands"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(string(commands)), " "); got != c.want {
			t.Errorf("%s: the script runs kubectl %s, want %s: %s\n%s", name, got, c.want, c.reason, out)
		}
	}
}
