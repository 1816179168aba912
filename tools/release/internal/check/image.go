package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"path/filepath"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/oci"
)

// imageIndex reads the index with the images of all platforms.
func (c *Check) imageIndex() (v1.ImageIndex, error) {
	path, descriptor, err := oci.Index(filepath.Join(c.Dir, artifact.ImageLayout))
	if err != nil {
		return nil, err
	}
	all, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	return all.ImageIndex(descriptor.Digest)
}

// image checks the image of each platform.
func (c *Check) image(context.Context) (string, error) {
	index, err := c.imageIndex()
	if err != nil {
		return "", err
	}
	if err := validate.Index(index); err != nil {
		return "", err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	var platforms []string
	for _, d := range list.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return "", err
		}
		if err := c.imageOf(artifact.Platform{OS: d.Platform.OS, Arch: d.Platform.Architecture}, image); err != nil {
			return "", fmt.Errorf("%s: %w", d.Platform, err)
		}
		platforms = append(platforms, d.Platform.String())
	}
	var want []string
	for _, p := range c.Platforms {
		if p.OS == "linux" {
			want = append(want, p.String())
		}
	}
	if !slices.Equal(platforms, want) {
		return "", fmt.Errorf("it is for %v, want %v", platforms, want)
	}
	return strings.Join(platforms, " and ") + ", as user " + artifact.NonRoot + ", with the archive's program and nothing else", nil
}

func (c *Check) imageOf(p artifact.Platform, image v1.Image) error {
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	want := oci.Release{Version: c.Version, Commit: c.commit, Time: config.Created.Time}
	switch got := config.Config; {
	case got.User != artifact.NonRoot:
		return fmt.Errorf("its user is %q", got.User)
	case !slices.Equal(got.Entrypoint, []string{artifact.Entrypoint}) || len(got.Cmd) > 0:
		return fmt.Errorf("it runs %q %q", got.Entrypoint, got.Cmd)
	case !maps.Equal(got.Labels, want.Labels()):
		return fmt.Errorf("its labels are %v", got.Labels)
	case config.OS != p.OS || config.Architecture != p.Arch:
		return fmt.Errorf("its configuration is for %s/%s", config.OS, config.Architecture)
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	if len(layers) != 1 {
		return fmt.Errorf("it has %d layers", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return err
	}
	files, err := bundle.ReadTar(content)
	if err := closeAfter(content, err); err != nil {
		return err
	}
	_, archived, err := c.unpacked(p.Archive(artifact.Program, c.Version))
	if err != nil {
		return err
	}
	if len(files) != 1 || "/"+files[0].Name != artifact.Entrypoint || !bytes.Equal(files[0].Content, archived[artifact.Program].Content) {
		return fmt.Errorf("it has %d files, or another program than the archive", len(files))
	}
	return nil
}

func closeAfter(c io.Closer, err error) error {
	if closing := c.Close(); err == nil {
		return closing
	}
	return err
}
