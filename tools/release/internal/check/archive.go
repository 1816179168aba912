package check

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
	"github.com/godwit-dev/godwit/tools/release/internal/manifest"
	"github.com/godwit-dev/godwit/tools/release/internal/pipeline"
	"github.com/godwit-dev/godwit/tools/release/internal/sbom"
)

// unpacked reads an archive. It returns the files in their order, and by their names.
func (c *Check) unpacked(name string) ([]bundle.File, map[string]bundle.File, error) {
	content, err := c.read(name)
	if err != nil {
		return nil, nil, err
	}
	files, err := bundle.Read(name, content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	byName := map[string]bundle.File{}
	for _, f := range files {
		byName[f.Name] = f
	}
	return files, byName, nil
}

// wanted are files that every archive of the program has, too.
var wanted = []string{
	"LICENSE", "README.md", "CHANGELOG.md", "completions/godwit.bash", "completions/_godwit", "completions/godwit.fish", "completions/godwit.ps1",
	"completions/kubectl_complete-godwit", "man/man1/godwit.1", "man/man1/godwit-crd-run.1",
}

// archives checks the archives of all platforms, and runs the program for this machine.
func (c *Check) archives(ctx context.Context) (string, error) {
	for _, p := range c.Platforms {
		if err := c.archive(p); err != nil {
			return "", err
		}
	}
	if !slices.Contains(c.Platforms, host()) {
		return fmt.Sprintf("%d platforms; none is that of this machine", len(c.Platforms)), nil
	}
	for _, name := range []string{artifact.Program, artifact.Plugin} {
		files, _, err := c.unpacked(host().Archive(name, c.Version))
		if err != nil {
			return "", err
		}
		dir := filepath.Join(c.temp, name)
		if err := bundle.Unpack(files, dir); err != nil {
			return "", err
		}
		if _, err := c.checkOutput(ctx, filepath.Join(dir, host().Executable(name)), fmt.Sprintf("godwit %s (commit %s), ", c.Version, c.commit)); err != nil {
			return "", err
		}
	}
	read, err := c.documents(ctx, filepath.Join(c.temp, artifact.Program))
	return fmt.Sprintf("%d platforms, both names; %s", len(c.Platforms), read), err
}

// archive checks the files and the program in the two archives of a platform.
func (c *Check) archive(p artifact.Platform) error {
	name := p.Archive(artifact.Program, c.Version)
	_, files, err := c.unpacked(name)
	if err != nil {
		return err
	}
	for _, file := range wanted {
		if len(files[file].Content) == 0 {
			return fmt.Errorf("%s has no %s", name, file)
		}
	}
	program := files[p.Executable(artifact.Program)]
	if program.Mode.Perm() != bundle.Executable {
		return fmt.Errorf("%s: the program has mode %v", name, program.Mode)
	}
	info, err := buildinfo.Read(bytes.NewReader(program.Content))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if got := settings["GOOS"] + "/" + settings["GOARCH"]; got != p.String() || info.Main.Version != c.Version || settings["CGO_ENABLED"] != "0" {
		return fmt.Errorf("%s has a program of %s %s for %s", name, info.Main.Path, info.Main.Version, got)
	}
	_, plugin, err := c.unpacked(p.Archive(artifact.Plugin, c.Version))
	if err != nil {
		return err
	}
	if !bytes.Equal(plugin[p.Executable(artifact.Plugin)].Content, program.Content) {
		return fmt.Errorf("%s and %s have different programs", name, p.Archive(artifact.Plugin, c.Version))
	}
	return nil
}

// documents reads the completion and a manual page of an unpacked archive.
func (c *Check) documents(ctx context.Context, dir string) (string, error) {
	script, err := os.ReadFile(filepath.Join(dir, "completions", "godwit.bash"))
	if err != nil {
		return "", err
	}
	// The script only defines functions, with which bash completes the first argument.
	words := "source completions/godwit.bash && type __start_godwit >/dev/null && ./godwit __complete --kubeconfig=/dev/null vers"
	out, err := command.Command{Dir: dir}.Run(ctx, "bash", "-c", words)
	if err != nil || !strings.Contains(out, "version") {
		return "", errors.Join(err, fmt.Errorf("the completion of %d bytes completes %q", len(script), out))
	}
	if man, _ := exec.LookPath("man"); man == "" {
		return "completion works; no manual page was read, because man is not installed", nil
	}
	page, err := command.Command{Dir: dir, Env: []string{"MANWIDTH=120", "MANPAGER=cat"}}.Run(ctx, "man", "--warnings", "--local-file", "man/man1/godwit-version.1")
	if err != nil || !strings.Contains(page, "godwit-version - Print the versions") || !strings.Contains(page, "Godwit "+c.Version) {
		return "", errors.Join(err, fmt.Errorf("man shows %q", page))
	}
	return "completion works, man reads the pages", nil
}

// crds checks that the files of CRDs have each kind once.
func (c *Check) crds(context.Context) (string, error) {
	var names []string
	for _, file := range []string{artifact.CRDs, artifact.HubCRDs} {
		text, err := c.read(file)
		if err != nil {
			return "", err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var crd struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
			if crd.Kind != "CustomResourceDefinition" || slices.Contains(names, crd.Metadata.Name) {
				return "", fmt.Errorf("%s has %q %s", file, crd.Kind, crd.Metadata.Name)
			}
			names = append(names, crd.Metadata.Name)
		}
	}
	const kinds = 4
	if len(names) != kinds {
		return "", fmt.Errorf("the CRDs are %v, want %d", names, kinds)
	}
	return strings.Join(names, ", "), nil
}

// boms checks that each bill of materials names the release and the checksum of its program.
func (c *Check) boms(context.Context) (string, error) {
	components := 0
	for _, p := range c.Platforms {
		text, err := c.read(p.SBOM(c.Version))
		if err != nil {
			return "", err
		}
		bom, err := sbom.Read(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.SBOM(c.Version), err)
		}
		_, files, err := c.unpacked(p.Archive(artifact.Program, c.Version))
		if err != nil {
			return "", err
		}
		sum := bundle.Sum(files[p.Executable(artifact.Program)].Content)
		if bom.Metadata.Component.Version != c.Version || !strings.Contains(string(text), sum) {
			return "", fmt.Errorf("%s is of version %s, or of another program", p.SBOM(c.Version), bom.Metadata.Component.Version)
		}
		components = len(*bom.Components)
	}
	return fmt.Sprintf("%d, of %d components", len(c.Platforms), components), nil
}

// pipelines runs the action for GitHub and the component for GitLab with the release.
func (c *Check) pipelines(ctx context.Context) (string, error) {
	if host().OS != "linux" || !slices.Contains(c.Platforms, host()) {
		return "not run: the release has no program for Linux on this machine", nil
	}
	return "the action and the component install the release, and refuse the removal of a storage version",
		pipeline.Try(ctx, c.Repository, c.Dir, c.Version, c.temp)
}

// krew installs the plugin with krew, from the manifest and the archive.
func (c *Check) krew(ctx context.Context) (string, error) {
	text, err := c.read(artifact.Krew)
	if err != nil {
		return "", err
	}
	plugin, err := manifest.ReadKrew(text)
	if err != nil {
		return "", err
	}
	if len(plugin.Spec.Platforms) != len(c.Platforms) || plugin.Spec.Version != c.Version {
		return "", fmt.Errorf("the manifest has %d platforms at %s", len(plugin.Spec.Platforms), plugin.Spec.Version)
	}
	for _, p := range plugin.Spec.Platforms {
		content, err := c.read(p.URI[strings.LastIndex(p.URI, "/")+1:])
		if err != nil {
			return "", err
		}
		if bundle.Sum(content) != p.Sha256 {
			return "", fmt.Errorf("%s has another checksum", p.URI)
		}
	}
	if !slices.Contains(c.Platforms, host()) {
		return "the checksums are those of the archives", nil
	}
	krew, err := command.Command{Dir: filepath.Join(c.Repository, "tools", "release"), Env: []string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0"}}.
		Line(ctx, "go", "tool", "-n", "krew")
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return "", err
	}
	root := filepath.Join(c.temp, "krew")
	in := command.Command{Dir: c.temp, Env: []string{"KREW_ROOT=" + root, "KREW_NO_UPGRADE_CHECK=1", "HOME=" + c.temp}}
	if _, err := in.Run(ctx, krew, "install", "--manifest="+filepath.Join(dir, artifact.Krew), "--archive="+filepath.Join(dir, host().Archive(artifact.Plugin, c.Version))); err != nil {
		return "", err
	}
	if _, err := c.checkOutput(ctx, filepath.Join(root, "bin", "kubectl-godwit"), "godwit "+c.Version+" "); err != nil {
		return "", err
	}
	return "krew installs the plugin", nil
}

// brew compares the formula with the archives.
func (c *Check) brew(context.Context) (string, error) {
	text, err := c.read(artifact.Brew)
	if err != nil {
		return "", err
	}
	found := 0
	for _, p := range c.Platforms {
		if p.OS == "windows" { // Homebrew does not run on Windows
			continue
		}
		name := p.Archive(artifact.Program, c.Version)
		content, err := c.read(name)
		if err != nil {
			return "", err
		}
		want := fmt.Sprintf("url %q\n      sha256 %q\n", artifact.Download(c.Version, name), bundle.Sum(content))
		if !strings.Contains(string(text), want) {
			return "", fmt.Errorf("the formula does not have %s with its checksum", name)
		}
		found++
	}
	return fmt.Sprintf("the checksums of %d archives", found), nil
}
