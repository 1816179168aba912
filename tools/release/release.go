package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/build"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/manifest"
	"github.com/godwit-dev/godwit/tools/release/internal/oci"
	"github.com/godwit-dev/godwit/tools/release/internal/sbom"
	"github.com/godwit-dev/godwit/tools/release/internal/source"
)

// options of a release.
type options struct {
	repository string
	// out is the folder of all releases. Each release has a subfolder, named after the version.
	out       string
	version   string
	platforms []artifact.Platform
	logf      func(format string, args ...any)
}

// make makes a release in a temporary folder, and renames the folder at the end, so that a release that fails leaves no
// files.
func (o options) make(ctx context.Context) (commit string, err error) {
	if err := artifact.CheckVersion(o.version); err != nil {
		return "", err
	}
	final := filepath.Join(o.out, o.version)
	if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s exists: remove it to make this release again, or choose another version", final)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // what everyone may read
		return "", err
	}
	work, err := os.MkdirTemp(o.out, ".release-")
	if err != nil {
		return "", err
	}
	if work, err = filepath.Abs(work); err != nil { // GOPATH and GOMODCACHE must be absolute
		return "", err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(work))
		if err != nil {
			_ = os.Remove(o.out) // fails if other releases are in it
		}
	}()
	o.logf("%s: the commit and the modules", o.version)
	from, err := source.Make(ctx, o.repository, o.version, filepath.Join(work, "source"))
	if err != nil {
		return "", err
	}
	r := &release{options: o, source: from, dir: filepath.Join(work, "release"), at: oci.Release{Version: o.version, Commit: from.Commit, Time: from.Time}}
	r.build = build.Build{
		Tree: from.Dir, Proxy: filepath.Join(r.dir, artifact.Proxy), Dir: filepath.Join(work, "build"), Version: o.version, Commit: from.Commit, Time: from.Time,
	}
	for _, dir := range []string{r.dir, r.build.Dir} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // what everyone may read
			return "", err
		}
	}
	if err := r.write(ctx); err != nil {
		return "", err
	}
	if err := from.Keep(ctx); err != nil {
		return "", err
	}
	return from.Commit, os.Rename(r.dir, final)
}

// release is a release while make makes it.
type release struct {
	options
	source *source.Release
	build  build.Build
	at     oci.Release
	dir    string
	sums   map[string]string
}

func (r *release) write(ctx context.Context) error {
	if err := r.source.WriteProxy(filepath.Join(r.dir, artifact.Proxy)); err != nil {
		return err
	}
	programs := map[artifact.Platform]string{}
	for _, p := range r.platforms {
		r.logf("%s: the program for %s", r.version, p)
		program, err := r.build.Program(ctx, p)
		if err != nil {
			return err
		}
		programs[p] = program
	}
	r.logf("%s: archives, bills of materials and manifests", r.version)
	if err := r.archives(ctx, programs); err != nil {
		return err
	}
	if err := r.manifests(); err != nil {
		return err
	}
	r.logf("%s: the image and the chart", r.version)
	digest, err := r.at.Image().Write(filepath.Join(r.dir, artifact.ImageLayout), programs)
	if err != nil {
		return err
	}
	if err := r.chart(ctx, digest); err != nil {
		return err
	}
	if err := r.crds(); err != nil {
		return err
	}
	if err := r.put(artifact.Tags, r.source.Tags()); err != nil {
		return err
	}
	list, err := bundle.Checksums(r.dir, artifact.Unlisted...)
	if err != nil {
		return err
	}
	return r.put(artifact.Checksums, list)
}

func (r *release) put(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644) //nolint:gosec // what everyone may read
}

// archives writes two archives and a bill of materials for each platform. krew and Windows can't unpack a link from one name
// of the program to the other, so each archive has the program under one name.
func (r *release) archives(ctx context.Context, programs map[artifact.Platform]string) error {
	documents, err := r.build.Documents(ctx)
	if err != nil {
		return err
	}
	license := slices.IndexFunc(documents, func(f bundle.File) bool { return f.Name == "LICENSE" })
	r.sums = map[string]string{}
	for _, p := range r.platforms {
		program, err := os.ReadFile(programs[p])
		if err != nil {
			return err
		}
		for name, more := range map[string][]bundle.File{artifact.Program: documents, artifact.Plugin: documents[license : license+1]} {
			file := p.Archive(name, r.version)
			all := append(slices.Clone(more), bundle.File{Name: p.Executable(name), Content: program, Mode: bundle.Executable})
			content, err := bundle.Write(file, all, r.source.Time)
			if err != nil {
				return err
			}
			r.sums[file] = bundle.Sum(content)
			if err := r.put(file, content); err != nil {
				return err
			}
		}
		bom, err := sbom.Of(programs[p], r.source.Time)
		if err != nil {
			return fmt.Errorf("the bill of materials of %s: %w", p, err)
		}
		if err := r.put(p.SBOM(r.version), bom); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) manifests() error {
	krew, err := manifest.Krew(r.version, r.sums)
	if err != nil {
		return err
	}
	brew, err := manifest.Brew(r.version, r.sums)
	if err != nil {
		return err
	}
	return errors.Join(r.put(artifact.Krew, krew), r.put(artifact.Brew, brew), r.put(artifact.Aqua, []byte(manifest.Aqua)))
}

// crds writes the CRDs of the chart, for an installation without it.
func (r *release) crds() error {
	names, err := filepath.Glob(filepath.Join(r.source.Dir, "charts", "godwit", "files", "crds", "*.yaml"))
	if err != nil {
		return err
	}
	files := map[string][]byte{artifact.CRDs: nil, artifact.HubCRDs: nil}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file := artifact.HubCRDs
		if strings.HasPrefix(filepath.Base(name), "godwit.dev_") {
			file = artifact.CRDs
		}
		files[file] = append(files[file], text...)
	}
	for name, text := range files {
		if len(text) == 0 {
			return fmt.Errorf("the chart has no CRD for %s", name)
		}
		if err := r.put(name, text); err != nil {
			return err
		}
	}
	return nil
}

// chart writes the chart, whose values name the image by its digest, as an archive and as a layout.
func (r *release) chart(ctx context.Context, digest string) error {
	helm, err := build.Helm(ctx, r.repository)
	if err != nil {
		return err
	}
	files, err := r.build.Chart(ctx, helm)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].Mode = bundle.Readable
		if files[i].Name == "godwit/values.yaml" {
			if files[i].Content, err = source.WithDigest(files[i].Content, digest); err != nil {
				return err
			}
		}
	}
	name := artifact.Chart(r.version)
	archive, err := bundle.Write(name, files, r.source.Time)
	if err != nil {
		return err
	}
	if err := r.put(name, archive); err != nil {
		return err
	}
	return r.at.WriteChart(filepath.Join(r.dir, artifact.ChartLayout), archive)
}
