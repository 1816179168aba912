// Package program compiles the programs that tests, the demo and the benchmarks run as
// separate processes. It uses the go command of the machine, as `make build` does.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Godwit compiles the current source of the command, and copies the program into a
// folder. It compiles bin/godwit, so that it does not link the program again after
// `make build` or another test.
func Godwit(ctx context.Context, folder string) (path string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	built := filepath.Join(root, "bin", "godwit")
	if _, err := run(ctx, root, "build", "-o", built, "github.com/godwit-dev/godwit/cmd/godwit"); err != nil {
		return "", err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", fmt.Errorf("read the program that was compiled: %w", err)
	}
	path = filepath.Join(folder, "godwit")
	// A process forked meanwhile would hold the program open for writing, and executing it would fail with "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o700); err != nil {
		return "", fmt.Errorf("copy the program that was compiled: %w", err)
	}
	return path, nil
}

// JobProvider compiles the provider of the job service of tests. It does not link the program
// again if the source has not changed.
func JobProvider(ctx context.Context) (path string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	path = filepath.Join(root, "bin", "jobprovider")
	_, err = run(ctx, root, "build", "-o", path, "github.com/godwit-dev/godwit/test/externalname/jobprovider")
	return path, err
}

// Helm compiles Helm, at the version that tools/helm names.
func Helm(ctx context.Context) (path string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	return run(ctx, root, "tool", "-modfile=tools/helm/go.mod", "-n", "helm")
}

// Image compiles a package that is a static program, and writes an image of it as a layout into a folder, by the program that makes the
// images of releases. It replaces the layout.
func Image(ctx context.Context, from, layout string) error {
	scratch, err := os.MkdirTemp("", "godwit-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	if _, err := run(ctx, root, "build", "-trimpath", "-ldflags=-s -w", "-o", scratch+"/", from); err != nil {
		return err
	}
	return ImageOf(ctx, filepath.Join(scratch, filepath.Base(from)), layout)
}

// ImageOf is like Image, for a program that is compiled. flags are further flags of the program that makes the image.
func ImageOf(ctx context.Context, program, layout string, flags ...string) error {
	releases, err := compileRelease(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(layout); err != nil {
		return err
	}
	args := append([]string{"image", "-out", layout}, flags...)
	command := exec.CommandContext(ctx, releases, append(args, "--", program)...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("make the image of %s: %w: %s", program, err, out)
	}
	return nil
}

// compileRelease compiles the program that makes releases, a module outside the workspace.
func compileRelease(ctx context.Context) (path string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	path = filepath.Join(root, "bin", "release")
	_, err = run(ctx, filepath.Join(root, "tools", "release"), "build", "-o", path, ".")
	return path, err
}

// Releases makes releases of the working tree, as it is on the disk, for this machine alone. It returns the folder that has them, each by
// its version. It makes each version once for the same tree, in bin/releases, and removes the releases of other trees.
func Releases(ctx context.Context, versions ...string) (folder string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	tree, err := writeTree(ctx, root)
	if err != nil {
		return "", err
	}
	folder, err = keepOnly(filepath.Join(root, "bin", "releases"), tree)
	if err != nil {
		return "", err
	}
	for _, version := range versions {
		if _, err := os.Stat(filepath.Join(folder, version)); err == nil {
			continue
		}
		commit, err := git(ctx, root, "", "commit-tree", tree, "-p", "HEAD", "-m", "the working tree")
		if err != nil {
			return "", err
		}
		if err := makeRelease(ctx, root, commit, folder, version); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// OlderRelease is like Releases, for the commit before the last one that has changed a file of the repository. It needs the history of the
// clone, and makes the release once for the commit, in bin/older-releases.
func OlderRelease(ctx context.Context, file, version string) (folder string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	shallow, err := git(ctx, root, "", "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if shallow == "true" {
		return "", errors.New("make a release of an older commit: this clone has no history: git fetch --unshallow")
	}
	changed, err := git(ctx, root, "", "log", "-1", "--format=%H", "--", file)
	if err != nil {
		return "", err
	}
	if changed == "" {
		return "", fmt.Errorf("make a release of an older commit: no commit has changed %s", file)
	}
	commit, err := git(ctx, root, "", "rev-parse", "--verify", changed+"^")
	if err != nil {
		return "", err
	}
	folder, err = keepOnly(filepath.Join(root, "bin", "older-releases"), commit)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(folder, version)); err == nil {
		return folder, nil
	}
	return folder, makeRelease(ctx, root, commit, folder, version)
}

// keepOnly returns a subfolder, which need not exist, and removes all others.
func keepOnly(all, name string) (folder string, err error) {
	others, err := filepath.Glob(filepath.Join(all, "*"))
	if err != nil {
		return "", err
	}
	for _, other := range others {
		if filepath.Base(other) != name {
			err = errors.Join(err, os.RemoveAll(other))
		}
	}
	return filepath.Join(all, name), err
}

// writeTree writes all files of the working tree that git does not ignore into git's database, and returns the name of the tree. It
// does not change what is staged.
func writeTree(ctx context.Context, root string) (string, error) {
	index, err := os.MkdirTemp("", "godwit-index-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(index) }()
	env := "GIT_INDEX_FILE=" + filepath.Join(index, "index")
	for _, args := range [][]string{{"read-tree", "HEAD"}, {"add", "--all"}} {
		if _, err := git(ctx, root, env, args...); err != nil {
			return "", err
		}
	}
	return git(ctx, root, env, "write-tree")
}

// makeRelease makes a release of a commit in a folder, by the program of the working tree. It checks the commit out in a clone.
func makeRelease(ctx context.Context, root, commit, folder, version string) error {
	releases, err := compileRelease(ctx)
	if err != nil {
		return err
	}
	clone, err := os.MkdirTemp("", "godwit-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(clone) }()
	if _, err := git(ctx, root, "", "clone", "--quiet", "--shared", "--no-checkout", root, clone); err != nil {
		return err
	}
	if _, err := git(ctx, clone, "", "checkout", "--quiet", commit); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, releases, "make", "-repository="+clone, "-out="+folder,
		"-platforms="+runtime.GOOS+"/"+runtime.GOARCH, "--", version)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("make release %s: %w: %s", version, err, out)
	}
	return nil
}

// git runs git, with one more variable and with an author of its own.
func git(ctx context.Context, folder, variable string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
	command.Dir = folder
	if variable != "" {
		command.Env = append(os.Environ(), variable)
	}
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// endTimeout is much longer than the go command needs to remove its temporary files.
const endTimeout = 10 * time.Second

// Root returns the folder of go.work, above the working directory or above the program.
func Root(ctx context.Context) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, folder := range []string{"", filepath.Dir(program)} {
		file, err := run(ctx, folder, "env", "GOWORK")
		if err != nil {
			return "", err
		}
		if filepath.Base(file) == "go.work" {
			return filepath.Dir(file), nil
		}
	}
	return "", errors.New("there is no go.work above the working directory or the program: run it within the repository")
}

// run runs the go command, without cgo and without the GOFLAGS of the calling test.
func run(ctx context.Context, folder string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if args[0] == "tool" || strings.Contains(folder, filepath.Join("tools", "release")) { // modules outside the workspace
		command.Env = append(command.Env, "GOWORK=off")
	}
	// After an interrupt, the go command removes its temporary files.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = endTimeout
	out, err := command.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the go command is not in PATH: install Go 1.26 or add it to PATH")
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
