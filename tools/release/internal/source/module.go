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

// roots are the modules that users ask for. What they require is published with them.
var roots = []string{".", "cmd", "externalname/crossplane", "hub"}

// Module is a module of the workspace that a release publishes.
type Module struct {
	Path string
	Dir  string // relative to the repository; the first module has "."
	File *modfile.File
}

// Tag is the name of the module's tag: of a module in a folder, it begins with the folder.
func (m Module) Tag(version string) string { return path.Join(m.Dir, version) }

// published returns the roots and what they require of ours, each after those that it requires. files has the go.mod of
// each module of the workspace, by its folder.
func published(files map[string][]byte) ([]Module, error) {
	byPath := map[string]Module{}
	for dir, text := range files {
		file, err := modfile.Parse(path.Join(dir, "go.mod"), text, nil)
		if err != nil {
			return nil, err
		}
		byPath[file.Module.Mod.Path] = Module{Path: file.Module.Mod.Path, Dir: dir, File: file}
	}
	var all []Module
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
	for _, dir := range roots {
		name := path.Join(artifact.Module, dir)
		if _, ok := byPath[name]; !ok {
			return nil, fmt.Errorf("go.work has no module %s", name)
		}
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

// released returns a go.mod as the tag has it: without replace lines of modules that are published, which it requires at
// the version.
func released(name string, text []byte, modules []Module, version string) ([]byte, error) {
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		for _, r := range slices.Clone(file.Replace) {
			if r.Old.Path == m.Path {
				if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
					return nil, err
				}
			}
		}
		for _, r := range file.Require {
			if r.Mod.Path == m.Path && r.Mod.Version != version {
				if err := file.AddRequire(m.Path, version); err != nil {
					return nil, err
				}
			}
		}
	}
	file.Cleanup()
	if len(file.Replace) > 0 {
		return nil, fmt.Errorf("%s replaces %s, which is not published: remove the line, or publish the module", name, file.Replace[0].Old.Path)
	}
	return file.Format()
}

// summed returns a go.sum with the checksums of our modules, and of no other version of them.
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

// byModule is the order that the go command gives a go.sum: by module, by version, and the module before its go.mod.
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
	imageDigest  = regexp.MustCompile(`(?m)^  digest: ""$`)
)

// stampedChart is a Chart.yaml with the version of the release.
func stampedChart(text []byte, version string) ([]byte, error) {
	if len(chartVersion.FindAll(text, -1)) != 1 || len(appVersion.FindAll(text, -1)) != 1 {
		return nil, errors.New("charts/godwit/Chart.yaml needs one line that begins with version and one with appVersion")
	}
	number := artifact.Number(version)
	text = chartVersion.ReplaceAll(text, []byte("version: "+number))
	return appVersion.ReplaceAll(text, []byte("appVersion: "+number)), nil
}

// WithDigest is a values.yaml that names the image by its digest.
func WithDigest(values []byte, digest string) ([]byte, error) {
	if len(imageDigest.FindAll(values, -1)) != 1 {
		return nil, errors.New("values.yaml needs one line for the digest of the image")
	}
	return imageDigest.ReplaceAll(values, []byte("  digest: "+digest)), nil
}
