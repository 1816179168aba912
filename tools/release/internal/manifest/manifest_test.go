package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
)

func sums(name string) map[string]string {
	all := map[string]string{}
	for i, p := range artifact.Platforms {
		all[p.Archive(name, "v0.1.0")] = strings.Repeat(fmt.Sprint(i), 64)
	}
	return all
}

// TestKrew: krew reads each platform, with the checksum of the archive that its address names.
func TestKrew(t *testing.T) {
	want := sums(artifact.Plugin)
	text, err := Krew("v0.1.0", want)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := ReadKrew(text)
	if err != nil {
		t.Fatal(err)
	}
	if plugin.Name != "godwit" || plugin.Spec.Version != "v0.1.0" || len(plugin.Spec.Platforms) != len(artifact.Platforms) {
		t.Errorf("%+v", plugin)
	}
	for _, p := range plugin.Spec.Platforms {
		at := strings.LastIndex(p.URI, "/")
		if name := p.URI[at+1:]; want[name] != p.Sha256 || !strings.Contains(name, p.Selector.MatchLabels["os"]+"_"+p.Selector.MatchLabels["arch"]) {
			t.Errorf("%+v", p)
		}
	}
	if _, err := ReadKrew([]byte("kind: Pod\napiVersion: v1\n")); err == nil {
		t.Error("a Pod is no plugin")
	}
}

func TestBrew(t *testing.T) {
	want := sums(artifact.Program)
	text, err := Brew("v0.1.0", want)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range artifact.Platforms {
		name := p.Archive(artifact.Program, "v0.1.0")
		pair := `url "` + artifact.Download("v0.1.0", name) + "\"\n      sha256 \"" + want[name] + `"`
		if strings.Contains(string(text), pair) == (p.OS == "windows") { // Homebrew has no Windows
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if !strings.Contains(string(text), `version "0.1.0"`) {
		t.Errorf("no version:\n%s", text)
	}
}
