// Package oci writes the image and the chart as layouts of the Open Container Initiative, without a container engine and
// without a registry.
package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
)

// Annotations of the Open Container Initiative.
const (
	title       = "org.opencontainers.image.title"
	describes   = "org.opencontainers.image.description"
	address     = "org.opencontainers.image.url"
	from        = "org.opencontainers.image.source"
	versioned   = "org.opencontainers.image.version"
	revision    = "org.opencontainers.image.revision"
	created     = "org.opencontainers.image.created"
	licensed    = "org.opencontainers.image.licenses"
	refName     = "org.opencontainers.image.ref.name"
	description = "Migrates Kubernetes objects to new API versions: the manager and the commands of Godwit"
)

// Media types of Helm.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Release has the facts about a release that are written into labels and annotations.
type Release struct {
	Version, Commit string
	Time            time.Time
}

// Labels returns the labels of the image.
func (r Release) Labels() map[string]string {
	return map[string]string{
		title: artifact.Program, describes: description, address: artifact.Homepage, from: artifact.Homepage, versioned: r.Version,
		revision: r.Commit, created: r.Time.UTC().Format(time.RFC3339), licensed: artifact.License,
	}
}

// Image is an image for Linux that has one file: a static program.
type Image struct {
	// Name of the program, in the root of the image.
	Name string
	// Ref is the tag of the image.
	Ref    string
	Labels map[string]string
	Time   time.Time
	// NoEntrypoint means that the arguments of a container begin with the path of the program.
	NoEntrypoint bool
}

// Image returns the image of the release.
func (r Release) Image() Image {
	return Image{Name: artifact.Program, Ref: r.Version, Labels: r.Labels(), Time: r.Time}
}

// of returns the image of a platform.
func (i Image) of(p artifact.Platform, program []byte) (v1.Image, error) {
	const mode = 0o555
	content, err := bundle.Tar([]bundle.File{{Name: i.Name, Content: program, Mode: mode}}, i.Time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	entrypoint := []string{"/" + i.Name}
	if i.NoEntrypoint {
		entrypoint = nil
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Arch, Created: v1.Time{Time: i.Time.UTC()}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: artifact.NonRoot, Entrypoint: entrypoint, WorkingDir: "/", Labels: i.Labels},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: i.Time.UTC()}, CreatedBy: "make release"}})
}

// Write writes an index with the image of each Linux platform, and returns the digest of the index. programs has the path
// of each platform's program.
func (i Image) Write(dir string, programs map[artifact.Platform]string) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range artifact.Platforms {
		name, ok := programs[p]
		if p.OS != "linux" || !ok {
			continue
		}
		program, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		image, err := i.of(p, program)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}}})
	}
	annotated, ok := mutate.Annotations(index, i.Labels).(v1.ImageIndex)
	if !ok {
		return "", fmt.Errorf("the index of the image takes no annotations")
	}
	digest, err := annotated.Digest()
	if err != nil {
		return "", err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	err = to.AppendIndex(annotated, layout.WithAnnotations(map[string]string{refName: i.Ref}))
	return digest.String(), err
}

// WriteChart writes a chart in the form in which Helm pushes it to a registry.
func (r Release) WriteChart(dir string, archive []byte) error {
	files, err := bundle.Read(artifact.Chart(r.Version), archive)
	if err != nil {
		return err
	}
	metadata := map[string]any{}
	for _, f := range files {
		if f.Name == "godwit/Chart.yaml" {
			if err := yaml.Unmarshal(f.Content, &metadata); err != nil {
				return err
			}
		}
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	annotations := map[string]string{created: r.Time.UTC().Format(time.RFC3339), from: artifact.Homepage, address: artifact.Homepage}
	for key, field := range map[string]string{title: "name", describes: "description", versioned: "version"} {
		text, ok := metadata[field].(string)
		if !ok {
			return fmt.Errorf("the metadata of the chart has no %s", field)
		}
		annotations[key] = text
	}
	return writeArtifact(dir, config, archive, annotations, artifact.Number(r.Version))
}

// writeArtifact writes a layout with one manifest for a config and a content. It does not use package mutate, which would compute
// the config of an image.
func writeArtifact(dir string, config, content []byte, annotations map[string]string, ref string) error {
	describe := func(media types.MediaType, blob []byte) (v1.Descriptor, error) {
		digest, size, err := v1.SHA256(bytes.NewReader(blob))
		return v1.Descriptor{MediaType: media, Digest: digest, Size: size}, err
	}
	ofConfig, err := describe(chartConfig, config)
	if err != nil {
		return err
	}
	ofContent, err := describe(chartContent, content)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: ofConfig, Layers: []v1.Descriptor{ofContent}, Annotations: annotations,
	})
	if err != nil {
		return err
	}
	ofManifest, err := describe(types.OCIManifestSchema1, manifest)
	if err != nil {
		return err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for digest, blob := range map[v1.Hash][]byte{ofConfig.Digest: config, ofContent.Digest: content, ofManifest.Digest: manifest} {
		if err := to.WriteBlob(digest, io.NopCloser(bytes.NewReader(blob))); err != nil {
			return err
		}
	}
	ofManifest.Annotations = map[string]string{refName: ref}
	return to.AppendDescriptor(ofManifest)
}

// Index reads a layout with one artifact, and returns the artifact's descriptor.
func Index(dir string) (layout.Path, v1.Descriptor, error) {
	from, err := layout.FromPath(dir)
	if err != nil {
		return "", v1.Descriptor{}, err
	}
	index, err := from.ImageIndex()
	if err != nil {
		return "", v1.Descriptor{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", v1.Descriptor{}, err
	}
	if len(manifest.Manifests) != 1 {
		return "", v1.Descriptor{}, fmt.Errorf("%s has %d artifacts, want one", filepath.Base(dir), len(manifest.Manifests))
	}
	return from, manifest.Manifests[0], nil
}
