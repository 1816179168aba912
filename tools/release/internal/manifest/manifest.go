// Package manifest writes the manifests with which krew, Homebrew, and aqua and mise install the program. Those of krew and Homebrew
// have the address and the checksum of each archive.
package manifest

import (
	"bytes"
	"fmt"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
)

const description = `Godwit rewrites custom resources at the storage version of their CRD, and trims
status.storedVersions, so that an old API version can be removed. It also upgrades
the instance types that KubeVirt stores in ControllerRevisions, renames the external
names of Crossplane's managed resources, and moves managed clusters between hubs of
Open Cluster Management.

Begin with "kubectl godwit plan". It changes nothing.
`

// Krew returns the manifest of the plugin. sums has the checksum of each archive, by its file name.
func Krew(version string, sums map[string]string) ([]byte, error) {
	plugin := index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: artifact.Program},
		Spec: index.PluginSpec{
			Version: version, Homepage: artifact.Homepage, ShortDescription: "Migrate objects to new API versions", Description: description,
		},
	}
	for _, p := range artifact.Platforms {
		name := p.Archive(artifact.Plugin, version)
		sum, ok := sums[name]
		if !ok {
			continue
		}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, index.Platform{
			URI: artifact.Download(version, name), Sha256: sum, Bin: p.Executable(artifact.Plugin),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": p.OS, "arch": p.Arch}},
			Files:    []index.FileOperation{{From: p.Executable(artifact.Plugin), To: "."}, {From: "LICENSE", To: "."}},
		})
	}
	return yaml.Marshal(plugin)
}

// ReadKrew reads the manifest as krew does.
func ReadKrew(text []byte) (index.Plugin, error) {
	var plugin index.Plugin
	err := yaml.UnmarshalStrict(text, &plugin)
	if err == nil && (plugin.APIVersion != constants.CurrentAPIVersion || plugin.Kind != constants.PluginKind) {
		err = fmt.Errorf("%s %s is not a manifest of a plugin", plugin.APIVersion, plugin.Kind)
	}
	return plugin, err
}

var formula = template.Must(template.New("formula").Parse(`# Written by make release.
class Godwit < Formula
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"
  version "{{.Number}}"
  license "{{.License}}"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "godwit"
    bin.install_symlink "godwit" => "kubectl-godwit"
    bin.install "completions/kubectl_complete-godwit"
    bash_completion.install "completions/godwit.bash" => "godwit"
    zsh_completion.install "completions/_godwit"
    fish_completion.install "completions/godwit.fish"
    man1.install Dir["man/man1/*.1"]
  end

  test do
    assert_match "godwit v#{version}", shell_output("#{bin}/godwit version --client")
  end
end
`))

type system struct {
	Name     string
	Archives []archive
}

type archive struct{ CPU, URL, Sum string }

// Homebrew's names of systems and processors.
var (
	systems = []struct{ brew, name string }{{"macos", "darwin"}, {"linux", "linux"}}
	cpus    = []struct{ brew, name string }{{"arm", "arm64"}, {"intel", "amd64"}}
)

// Brew returns the formula of Homebrew. sums has the checksum of each archive, by its file name.
func Brew(version string, sums map[string]string) ([]byte, error) {
	data := struct {
		Summary, Homepage, Number, License string
		Systems                            []system
	}{artifact.Summary, artifact.Homepage, artifact.Number(version), artifact.License, nil}
	for _, s := range systems {
		one := system{Name: s.brew}
		for _, c := range cpus {
			name := artifact.Platform{OS: s.name, Arch: c.name}.Archive(artifact.Program, version)
			if sum, ok := sums[name]; ok {
				one.Archives = append(one.Archives, archive{c.brew, artifact.Download(version, name), sum})
			}
		}
		if len(one.Archives) > 0 {
			data.Systems = append(data.Systems, one)
		}
	}
	var out bytes.Buffer
	err := formula.Execute(&out, data)
	return out.Bytes(), err
}

// Aqua is the entry of aqua's registry, from which mise installs as well. It is the same for each release: the checksums, and their
// signature, are files of the release.
const Aqua = `# Written by make release.
packages:
- type: github_release
  repo_owner: ` + artifact.Owner + `
  repo_name: ` + artifact.Program + `
  description: ` + artifact.Summary + `
  asset: ` + artifact.Program + `_{{.Version}}_{{.OS}}_{{.Arch}}.{{.Format}}
  format: tar.gz
  overrides:
  - goos: windows
    format: zip
  checksum:
    type: github_release
    asset: ` + artifact.Checksums + `
    algorithm: sha256
    cosign:
      opts: [--insecure-ignore-tlog=true] # the signature is of a key, and in no log
      signature:
        type: github_release
        asset: ` + artifact.Signature + `
      key:
        type: http
        url: https://raw.githubusercontent.com/` + artifact.Owner + `/` + artifact.Program + `/main/` + artifact.PublicKey + `
`
