package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
)

// published are the folders of the modules that users install or embed. A release has no other modules.
var published = []string{".", "cmd", "externalname/crossplane"}

// Module is a module of the workspace that a release publishes.
type Module struct {
	Path string
	Dir  string // relative to the repository; the first module has "."
	File *modfile.File
}

// Tag returns the name of the module's tag. For a module in a folder, it begins with the folder.
func (m Module) Tag(version string) string { return path.Join(m.Dir, version) }

// workspace has the modules of go.work.
type workspace struct {
	// published has each module after the modules that it requires.
	published []Module
	// unpublished are the paths of the other modules. Only tests of a published module may import them.
	unpublished []string
}

// newWorkspace reads the go.mod of each module, given by its folder.
func newWorkspace(files map[string][]byte) (workspace, error) {
	byPath := map[string]Module{}
	var w workspace
	for dir, text := range files {
		file, err := modfile.Parse(path.Join(dir, "go.mod"), text, nil)
		if err != nil {
			return w, err
		}
		m := Module{Path: file.Module.Mod.Path, Dir: dir, File: file}
		if slices.Contains(published, dir) {
			byPath[m.Path] = m
		} else {
			w.unpublished = append(w.unpublished, m.Path)
		}
	}
	for _, dir := range published {
		if name := path.Join(artifact.Module, dir); byPath[name].Path == "" {
			return w, fmt.Errorf("go.work has no module %s", name)
		}
	}
	var err error
	w.published, err = inOrder(byPath)
	return w, err
}

// inOrder puts each module after the modules that it requires.
func inOrder(byPath map[string]Module) (all []Module, err error) {
	state := map[string]int{} // 1 while its requirements are added, 2 after it was added
	var add func(name string) error
	add = func(name string) error {
		m, ours := byPath[name]
		switch {
		case !ours || state[name] == 2:
			return nil
		case state[name] == 1:
			return fmt.Errorf("module %s requires itself, by way of another one", name)
		}
		state[name] = 1
		for _, r := range sorted(m.File) {
			if err := add(r); err != nil {
				return err
			}
		}
		state[name] = 2
		all = append(all, m)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(byPath)) {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sorted(file *modfile.File) []string {
	var names []string
	for _, r := range file.Require {
		names = append(names, r.Mod.Path)
	}
	slices.Sort(names)
	return names
}

// released returns a go.mod as the tag has it: it requires published modules at the version, and no unpublished module. It has no
// replace lines, because users do not have the folders of the other modules.
func (w workspace) released(name string, text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range w.published {
		for _, r := range file.Require {
			if r.Mod.Path == m.Path && r.Mod.Version != version {
				if err := file.AddRequire(m.Path, version); err != nil {
					return nil, err
				}
			}
		}
		if err := file.DropReplace(m.Path, ""); err != nil {
			return nil, err
		}
	}
	for _, other := range w.unpublished {
		if err := errors.Join(file.DropRequire(other), file.DropReplace(other, "")); err != nil {
			return nil, err
		}
	}
	file.Cleanup()
	if len(file.Replace) > 0 {
		return nil, fmt.Errorf("%s replaces %s, which users would not have: remove the line", name, file.Replace[0].Old.Path)
	}
	return file.Format()
}

// summed returns a go.sum in which the modules of the release have the checksums of its version, and no others. The lines of
// other modules stay.
func summed(text []byte, file *modfile.File, sums map[string]string) []byte {
	lines := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, " "); sums[name] == "" {
			lines[line] = true
		}
	}
	for _, r := range file.Require {
		if sum := sums[r.Mod.Path]; sum != "" {
			for line := range strings.Lines(sum) {
				lines[line] = true
			}
		}
	}
	return []byte(strings.Join(slices.SortedFunc(maps.Keys(lines), byModule), ""))
}

// byModule compares two lines in the order of a go.sum: by module, by version, and the module before its go.mod.
func byModule(a, b string) int {
	nameA, restA, _ := strings.Cut(a, " ")
	nameB, restB, _ := strings.Cut(b, " ")
	versionA, _, _ := strings.Cut(restA, " ")
	versionB, _, _ := strings.Cut(restB, " ")
	versionA, fileA, _ := strings.Cut(versionA, "/")
	versionB, fileB, _ := strings.Cut(versionB, "/")
	return cmp.Or(cmp.Compare(nameA, nameB), semver.Compare(versionA, versionB), cmp.Compare(fileA, fileB), cmp.Compare(a, b))
}

var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
	chartImage   = regexp.MustCompile(`(?m)^( +image: ` + regexp.QuoteMeta(artifact.Image) + `):v.*$`) // for Artifact Hub
	imageDigest  = regexp.MustCompile(`(?m)^  digest: ""$`)
)

// stampedChart returns a Chart.yaml with the version of the release.
func stampedChart(text []byte, version string) ([]byte, error) {
	if len(chartVersion.FindAll(text, -1)) != 1 || len(appVersion.FindAll(text, -1)) != 1 {
		return nil, errors.New("charts/godwit/Chart.yaml needs one line that begins with version and one with appVersion")
	}
	number := artifact.Number(version)
	text = chartImage.ReplaceAll(text, []byte("${1}:"+version))
	text = chartVersion.ReplaceAll(text, []byte("version: "+number))
	return appVersion.ReplaceAll(text, []byte("appVersion: "+number)), nil
}

// WithDigest returns a values.yaml that names the image by its digest.
func WithDigest(values []byte, digest string) ([]byte, error) {
	if len(imageDigest.FindAll(values, -1)) != 1 {
		return nil, errors.New("values.yaml needs one line for the digest of the image")
	}
	return imageDigest.ReplaceAll(values, []byte("  digest: "+digest)), nil
}
