// Package build compiles the program as `go install MODULE@VERSION` does: from the modules that a release publishes, so
// that every user can compile the same bytes.
package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
)

// Package is the import path of the program.
const Package = artifact.Module + "/cmd/godwit"

// Flags returns the flags of the linker.
func Flags(commit string) string {
	return "-s -w -X " + artifact.Module + "/cmd/internal/frame.commit=" + commit
}

// Environment returns the environment of the go command. The go command uses no network and none of the user's settings. It
// finds modules in the proxy folder, and then in the cache of downloaded modules. dir is for the modules and programs of this build.
func Environment(ctx context.Context, proxy, dir string) ([]string, error) {
	downloaded, err := command.Command{}.Line(ctx, "go", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	proxy, err = filepath.Abs(proxy)
	if err != nil {
		return nil, err
	}
	return []string{
		"CGO_ENABLED=0", "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0", "GO111MODULE=on",
		"GOFLAGS=-trimpath -modcacherw -buildvcs=false",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(downloaded, "cache", "download"),
		"GOSUMDB=off", // Build checks go.sum
		"GOPATH=" + filepath.Join(dir, "gopath"), "GOMODCACHE=" + filepath.Join(dir, "modules"), "GOBIN=",
	}, nil
}

// Build compiles a release.
type Build struct {
	// Tree has the files of the commit, and Proxy its modules.
	Tree, Proxy string
	// Dir is for the modules and programs of this build.
	Dir             string
	Version, Commit string
	Time            time.Time
}

// Program compiles the program for a platform, and returns its path.
func (b Build) Program(ctx context.Context, p artifact.Platform) (string, error) {
	env, err := Environment(ctx, b.Proxy, b.Dir)
	if err != nil {
		return "", err
	}
	env = append(env, "GOOS="+p.OS, "GOARCH="+p.Arch)
	// `go install MODULE@VERSION` does not check go.sum. `go list` in the folder of the module does, for each module that the
	// platform needs.
	in := command.Command{Dir: filepath.Join(b.Tree, "cmd"), Env: env}
	if _, err := in.Run(ctx, "go", "list", "-mod=readonly", "-deps", "./godwit"); err != nil {
		return "", fmt.Errorf("the modules of %s are not complete, or not those of go.sum; download them once with `GOWORK=off go -C cmd mod download`: %w", p, err)
	}
	in.Dir = b.Dir
	if _, err := in.Run(ctx, "go", "install", "-ldflags="+Flags(b.Commit), Package+"@"+b.Version); err != nil {
		return "", fmt.Errorf("compile for %s: %w", p, err)
	}
	folder := "bin"
	if p.OS != runtime.GOOS || p.Arch != runtime.GOARCH {
		folder = filepath.Join("bin", p.OS+"_"+p.Arch)
	}
	return filepath.Join(b.Dir, "gopath", folder, p.Executable(artifact.Program)), nil
}

// completions has the file name for each shell, as the shell expects it.
var completions = map[string]string{"bash": "godwit.bash", "zsh": "_godwit", "fish": "godwit.fish", "powershell": "godwit.ps1"}

// kubectlCompletion is the program that kubectl runs to complete the arguments of the plugin.
const kubectlCompletion = "#!/bin/sh\nexec kubectl-godwit __complete \"$@\"\n"

// Documents returns the completion of each shell, and a manual page for each command. They are the same on all platforms.
func (b Build) Documents(ctx context.Context) ([]bundle.File, error) {
	program, err := b.Program(ctx, artifact.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	files := []bundle.File{{Name: "completions/kubectl_complete-godwit", Content: []byte(kubectlCompletion), Mode: bundle.Executable}}
	for shell, name := range completions {
		script, err := command.Command{Env: []string{"HOME=" + b.Dir, "KUBECONFIG=" + os.DevNull}}.Run(ctx, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, bundle.File{Name: "completions/" + name, Content: []byte(script), Mode: bundle.Readable})
	}
	pages, err := b.pages(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(b.Tree, name))
		if err != nil {
			return nil, err
		}
		files = append(files, bundle.File{Name: name, Content: text, Mode: bundle.Readable})
	}
	return append(files, pages...), nil
}

// pages returns the manual pages that package cmd/internal/reference generates.
func (b Build) pages(ctx context.Context) ([]bundle.File, error) {
	env, err := Environment(ctx, b.Proxy, b.Dir)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, "man1")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	in := command.Command{Dir: filepath.Join(b.Tree, "cmd"), Env: append(env, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.Time.Unix()))}
	if _, err := in.Run(ctx, "go", "run", "-mod=readonly", "./internal/reference", "-manual="+dir, "-version="+b.Version); err != nil {
		return nil, fmt.Errorf("write the manual pages: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []bundle.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".1") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, bundle.File{Name: "man/man1/" + entry.Name(), Content: text, Mode: bundle.Readable})
	}
	return files, nil
}

// Chart packages the chart of the tree with Helm, and returns its files.
func (b Build) Chart(ctx context.Context, helm string) ([]bundle.File, error) {
	dir := filepath.Join(b.Dir, "chart")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	in := command.Command{Env: []string{"HOME=" + b.Dir, "KUBECONFIG=" + os.DevNull}}
	if _, err := in.Run(ctx, helm, "package", "--destination="+dir, filepath.Join(b.Tree, "charts", "godwit")); err != nil {
		return nil, err
	}
	name := artifact.Chart(b.Version)
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("helm package wrote no %s: %w", name, err)
	}
	return bundle.Read(name, content)
}

// Helm compiles Helm, at the version that tools/helm names, and returns its path.
func Helm(ctx context.Context, repository string) (string, error) {
	in := command.Command{Dir: repository, Env: []string{"GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="}}
	return in.Line(ctx, "go", "tool", "-modfile=tools/helm/go.mod", "-n", "helm")
}
