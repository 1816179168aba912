package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/build"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
)

// tags returns the tag of each module of the release, by the path of the module.
func (c *Check) tags() (map[string]string, error) {
	text, err := c.read(artifact.Tags)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		tag, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		dir := strings.TrimSuffix(strings.TrimSuffix(tag, c.Version), "/")
		name := artifact.Module
		if dir != "" {
			name += "/" + dir
		}
		all[name] = tag
	}
	return all, nil
}

// modules checks the go.mod files that the proxy serves: they have no replace lines, and require the modules of the release at
// its version.
func (c *Check) modules(context.Context) (string, error) {
	tags, err := c.tags()
	if err != nil {
		return "", err
	}
	for name := range tags {
		escaped, err := module.EscapePath(name)
		if err != nil {
			return "", err
		}
		text, err := c.read(filepath.Join(artifact.Proxy, filepath.FromSlash(escaped), "@v", c.Version+".mod"))
		if err != nil {
			return "", err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return "", err
		}
		if len(file.Replace) > 0 {
			return "", fmt.Errorf("%s replaces %s", name, file.Replace[0].Old.Path)
		}
		for _, r := range file.Require {
			if !strings.HasPrefix(r.Mod.Path+"/", artifact.Module+"/") {
				continue
			}
			if _, published := tags[r.Mod.Path]; !published || r.Mod.Version != c.Version {
				return "", fmt.Errorf("%s requires %s at %s, which is not of this release", name, r.Mod.Path, r.Mod.Version)
			}
		}
	}
	return fmt.Sprintf("%d, without replace lines", len(tags)), nil
}

// environment returns the environment of the go command for a user of the release's modules.
func (c *Check) environment(ctx context.Context, dir string) ([]string, error) {
	return build.Environment(ctx, filepath.Join(c.Dir, artifact.Proxy), dir)
}

// install installs the program as users do.
func (c *Check) install(ctx context.Context) (string, error) {
	dir := filepath.Join(c.temp, "go")
	env, err := c.environment(ctx, dir)
	if err != nil {
		return "", err
	}
	if _, err := (command.Command{Dir: c.temp, Env: env}).Run(ctx, "go", "install", build.Package+"@"+c.Version); err != nil {
		return "", err
	}
	return c.checkOutput(ctx, filepath.Join(dir, "gopath", "bin", "godwit"), "godwit "+c.Version+", ")
}

// checkOutput runs `godwit version --client`, and checks how its output begins.
func (c *Check) checkOutput(ctx context.Context, program, want string) (string, error) {
	line, err := command.Command{Dir: c.temp, Env: []string{"KUBECONFIG=" + os.DevNull}}.Line(ctx, program, "version", "--client")
	if err == nil && !strings.HasPrefix(line, want) {
		err = fmt.Errorf("%s says %q, want %q", filepath.Base(program), line, want)
	}
	return line, err
}

// embed compiles the sample operator. Of the release, it must require module 1 alone.
func (c *Check) embed(ctx context.Context) (string, error) {
	dir, from := filepath.Join(c.temp, "operator"), filepath.Join(c.Repository, "test", "embed", "testdata")
	for _, folder := range []string{"operator", "godwit"} {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(from, folder))); err != nil {
			return "", err
		}
	}
	env, err := c.environment(ctx, filepath.Join(c.temp, "go"))
	if err != nil {
		return "", err
	}
	in := command.Command{Dir: dir, Env: env}
	before, err := in.Run(ctx, "go", "list", "-m", "all")
	if err != nil {
		return "", err
	}
	if _, err := in.Run(ctx, "go", "get", artifact.Module+"/crdmigrator@"+c.Version); err != nil {
		return "", err
	}
	if _, err := in.Run(ctx, "go", "build", "-o", "operator.out", "."); err != nil {
		return "", err
	}
	after, err := in.Run(ctx, "go", "list", "-m", "all")
	if err != nil {
		return "", err
	}
	line := artifact.Module + " " + c.Version + "\n"
	if strings.Replace(after, line, "", 1) != before || !strings.Contains(after, line) {
		return "", errors.New("the operator's modules are others than before, not only one more")
	}
	return "the operator has one more module, and compiles", nil
}

// host returns the platform of this machine.
func host() artifact.Platform { return artifact.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH} }
