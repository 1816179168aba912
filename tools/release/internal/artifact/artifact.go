// Package artifact has the names of a release's files, platforms and addresses.
package artifact

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Where a release is published.
const (
	Owner      = "godwit-dev"
	Module     = "github.com/godwit-dev/godwit"
	Homepage   = "https://" + Module
	Downloads  = Homepage + "/releases/download"
	Image      = "ghcr.io/godwit-dev/godwit"
	Charts     = "ghcr.io/godwit-dev/charts"
	License    = "Apache-2.0"
	Summary    = "Migrate Kubernetes objects to new API versions without losing any"
	Program    = "godwit"
	Plugin     = "kubectl-godwit"
	NonRoot    = "65532:65532"
	Entrypoint = "/godwit"
)

// Files and folders of a release.
const (
	Checksums   = "checksums.txt"
	Tags        = "tags.txt"
	ImageLayout = "image"
	ChartLayout = "chart"
	Proxy       = "goproxy"
	Krew        = "godwit.yaml" // krew requires the name of the plugin
	Brew        = "godwit.rb"
	Aqua        = "aqua.yaml"
	CRDs        = "crds.yaml"                   // of group godwit.dev
	HubCRDs     = "crds-cluster-migration.yaml" // of the feature that moves clusters: another project has a CRD of the same name
	Signature   = "checksums.txt.sig"
	Provenance  = "provenance.intoto.jsonl"
)

// PublicKey is the file of the repository with the key that verifies releases.
const PublicKey = "cosign.pub"

// Unlisted are the files that the list of checksums does not have: the list, and the signatures, which are made of it.
var Unlisted = []string{Checksums, Signature, Provenance}

// Platform is an operating system and a processor, as the go command names them.
type Platform struct{ OS, Arch string }

// Platforms are the platforms of every release.
var Platforms = []Platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// ParsePlatforms reads platforms such as linux/amd64,darwin/arm64. An empty text means all.
func ParsePlatforms(text string) ([]Platform, error) {
	if text == "" {
		return Platforms, nil
	}
	var all []Platform
	for _, p := range Platforms {
		if strings.Contains(","+text+",", ","+p.String()+",") {
			all = append(all, p)
		}
	}
	if n := strings.Count(text, ",") + 1; len(all) != n {
		return nil, fmt.Errorf("PLATFORMS=%s names a platform that no release has: choose from %v, separated by commas", text, Platforms)
	}
	return all, nil
}

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Executable returns the file name of a program.
func (p Platform) Executable(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// Archive returns the file name of the archive of a program.
func (p Platform) Archive(name, version string) string {
	extension := "tar.gz"
	if p.OS == "windows" {
		extension = "zip"
	}
	return p.file(name, version) + "." + extension
}

// SBOM returns the file name of the bill of materials of a platform's program.
func (p Platform) SBOM(version string) string { return p.file(Program, version) + ".cdx.json" }

func (p Platform) file(name, version string) string {
	return strings.Join([]string{name, version, p.OS, p.Arch}, "_")
}

// Download returns the address of a file of a release.
func Download(version, file string) string { return Downloads + "/" + version + "/" + file }

// Chart returns the file name of the chart.
func Chart(version string) string { return "godwit-" + Number(version) + ".tgz" }

// Number returns a version without its v, as Helm, Homebrew and the tags of chart images write it.
func Number(version string) string { return strings.TrimPrefix(version, "v") }

// CheckVersion refuses a version that can't be a tag of the modules, the image and the chart.
func CheckVersion(version string) error {
	switch {
	case version == "":
		return fmt.Errorf("no version is given: make release VERSION=v0.1.0")
	case !semver.IsValid(version):
		return fmt.Errorf("VERSION=%s is not a semantic version: write it like v0.1.0 or v0.1.0-rc.1", version)
	case semver.Build(version) != "":
		return fmt.Errorf("VERSION=%s has build metadata, which a tag of an image can't have: remove %s", version, semver.Build(version))
	case semver.Canonical(version) != version:
		return fmt.Errorf("VERSION=%s is incomplete: write %s", version, semver.Canonical(version))
	case semver.Compare(semver.Major(version), "v1") > 0:
		return fmt.Errorf("VERSION=%s: the paths of the modules have to end in /%s first", version, semver.Major(version))
	}
	return nil
}
