package manifest

import (
	"fmt"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

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

// TestIndexesAccept: what krew-index and Homebrew ask of descriptions.
func TestIndexesAccept(t *testing.T) {
	plugin, err := Krew("v0.1.0", sums(artifact.Plugin))
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadKrew(plugin)
	if err != nil {
		t.Fatal(err)
	}
	if short := read.Spec.ShortDescription; len(short) > 50 || strings.HasSuffix(short, ".") {
		t.Errorf("krew-index takes a short description of at most 50 characters, without a full stop: %q", short)
	}
	if desc := artifact.Summary; len(desc) > 80 || strings.HasSuffix(desc, ".") || strings.HasPrefix(desc, "A ") || strings.Contains(strings.ToLower(desc), "godwit") {
		t.Errorf("Homebrew takes a description of at most 80 characters, without an article, a full stop and the name: %q", desc)
	}
}

// TestAqua: the entry names the archive of each platform, and the files that verify it.
func TestAqua(t *testing.T) {
	var registry struct {
		Packages []struct {
			Type      string
			RepoOwner string `json:"repo_owner"`
			RepoName  string `json:"repo_name"`
			Asset     string
			Format    string
			Overrides []struct{ Goos, Format string }
			Checksum  struct {
				Asset  string
				Cosign struct{ Signature struct{ Asset string } }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(Aqua), &registry); err != nil || len(registry.Packages) != 1 {
		t.Fatal(err, registry)
	}
	p := registry.Packages[0]
	if "github.com/"+p.RepoOwner+"/"+p.RepoName != artifact.Module || p.Type != "github_release" {
		t.Errorf("the package is %s of %s/%s", p.Type, p.RepoOwner, p.RepoName)
	}
	asset := template.Must(template.New("").Option("missingkey=error").Parse(p.Asset))
	for _, platform := range artifact.Platforms {
		format := p.Format
		for _, o := range p.Overrides {
			if o.Goos == platform.OS {
				format = o.Format
			}
		}
		var name strings.Builder
		if err := asset.Execute(&name, map[string]string{"Version": "v0.1.0", "OS": platform.OS, "Arch": platform.Arch, "Format": format}); err != nil {
			t.Fatal(err)
		}
		if want := platform.Archive(artifact.Program, "v0.1.0"); name.String() != want {
			t.Errorf("%s: %s, want %s", platform, name.String(), want)
		}
	}
	if p.Checksum.Asset != artifact.Checksums || p.Checksum.Cosign.Signature.Asset != artifact.Signature {
		t.Errorf("it verifies with %+v", p.Checksum)
	}
}
