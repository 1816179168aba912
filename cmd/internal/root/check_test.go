package root_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/root"
	"github.com/godwit-dev/godwit/test/gomodule"
)

const providerKubernetes = "github.com/crossplane-contrib/provider-kubernetes"

// TestCheckOfProviderKubernetes compares the CRDs of two releases of a provider: one field is gone, and two others
// are new.
func TestCheckOfProviderKubernetes(t *testing.T) {
	var crds []string
	for _, version := range []string{"v0.17.1", "v1.3.1"} {
		dir, err := gomodule.Dir(t.Context(), providerKubernetes+"@"+version)
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, filepath.Join(dir, "package", "crds"))
	}
	run := func(want int, flags ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		args := append([]string{"godwit", "crd", "check", "--previous=" + crds[0], "-f", crds[1]}, flags...)
		if code := root.Main(t.Context(), args, streams, clock.RealClock{}); code != want {
			t.Errorf("exit code %d, want %d: %s", code, want, errOut.String())
		}
		return out.String()
	}
	var list struct {
		Kind  string
		Items []struct{ Path, Change, Approach string }
	}
	if err := json.Unmarshal([]byte(run(1, "-o", "json")), &list); err != nil || list.Kind != "CRDAdviceList" {
		t.Fatalf("%s: %v", list.Kind, err)
	}
	got := map[string]string{}
	for _, one := range list.Items {
		got[one.Path] = one.Change + " " + one.Approach
	}
	for path, want := range map[string]string{
		"spec.publishConnectionDetailsTo": "Restructured Undecided",
		"status.lastHandledReconcileAt":   "Additive None",
	} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
	const unused = "--answer=spec.publishConnectionDetailsTo=Unused"
	if text := run(0, unused); !strings.Contains(text, " 0 undecided") {
		t.Errorf("the sum is %q", text)
	}
	pages := run(1, "-o", "markdown", "--answer=spec.publishConnectionDetailsTo=FromObject")
	for _, want := range []string{"# Upgrade notes for users\n", "# Migration notes for developers\n", "| `spec.publishConnectionDetailsTo` | Restructured | Webhook |"} {
		if !strings.Contains(pages, want) {
			t.Errorf("the pages lack %q:\n%s", want, pages)
		}
	}
	if again := run(0, "-o", "markdown", unused); !strings.Contains(again, "all changes are additive") {
		t.Errorf("the pages are %s", again)
	}
}
