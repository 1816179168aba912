package oci

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
)

var release = Release{Version: "v0.1.0", Commit: "0123456789abcdef0123456789abcdef01234567", Time: time.Date(2026, 5, 4, 12, 0, 1, 0, time.UTC)}

// programs are two that are no programs: a layout does not look into them.
func programs(t *testing.T) map[artifact.Platform]string {
	t.Helper()
	all := map[artifact.Platform]string{}
	for _, p := range artifact.Platforms {
		all[p] = filepath.Join(t.TempDir(), p.Arch)
		if err := os.WriteFile(all[p], []byte(p.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func sums(t *testing.T, dir string) string {
	t.Helper()
	list, err := bundle.Checksums(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}

// TestImage: the digest names an index of both platforms of Linux, and is the same each time.
func TestImage(t *testing.T) {
	dir, all := t.TempDir(), programs(t)
	digest, err := release.Image().Write(dir, all)
	if err != nil {
		t.Fatal(err)
	}
	path, descriptor, err := Index(dir)
	if err != nil {
		t.Fatal(err)
	}
	if descriptor.Digest.String() != digest || descriptor.Annotations[refName] != "v0.1.0" {
		t.Errorf("the layout has %+v, want %s", descriptor, digest)
	}
	layout, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndex(descriptor.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifest.Manifests {
		got = append(got, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/godwit" || c.Labels[revision] != release.Commit {
			t.Errorf("%s: %+v", m.Platform, c)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got); diff != "" {
		t.Error(diff)
	}
	again := t.TempDir()
	if _, err := release.Image().Write(again, all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums(t, dir), sums(t, again)); diff != "" {
		t.Errorf("another time it has other bytes:\n%s", diff)
	}
}

// TestEntrypoint: an image names its program, unless the arguments of a container do.
func TestEntrypoint(t *testing.T) {
	for without, want := range map[bool][]string{false: {"/work"}, true: nil} {
		image, err := Image{Name: "work", NoEntrypoint: without}.of(artifact.Platform{OS: "linux", Arch: "amd64"}, []byte("program"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, config.Config.Entrypoint); diff != "" {
			t.Errorf("without an entrypoint: %t (-want +got):\n%s", without, diff)
		}
	}
}

// TestChart: the layout has what Helm pushes: the metadata as config, the archive as the only layer.
func TestChart(t *testing.T) {
	archive, err := bundle.Write("godwit-0.1.0.tgz", []bundle.File{
		{Name: "godwit/Chart.yaml", Content: []byte("apiVersion: v2\nname: godwit\ndescription: d\nversion: 0.1.0\n"), Mode: bundle.Readable},
	}, release.Time)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := release.WriteChart(dir, archive); err != nil {
		t.Fatal(err)
	}
	path, descriptor, err := Index(dir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := path.Image(descriptor.Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfig || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("%+v", manifest)
	}
	blob, err := path.Bytes(manifest.Layers[0].Digest)
	if err != nil || !bytes.Equal(blob, archive) {
		t.Errorf("the layer is another archive: %v", err)
	}
	if got := manifest.Annotations[versioned]; got != "0.1.0" {
		t.Errorf("annotations %v", manifest.Annotations)
	}
	if err := release.WriteChart(t.TempDir(), []byte("no archive")); err == nil {
		t.Error("what is no archive was written")
	}
}
