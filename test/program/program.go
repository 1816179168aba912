// Package program compiles the programs that tests run as processes of their own,
// with the go command of the machine and as `make build` does. Go keeps what it has
// compiled, so that a second test of the same program waits for a link at most.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Godwit compiles the command into a folder, as it is now.
func Godwit(ctx context.Context, folder string) (path string, err error) {
	path = filepath.Join(folder, "godwit")
	_, err = run(ctx, "", "build", "-o", path, "github.com/godwit-dev/godwit/cmd/godwit")
	return path, err
}

// Helm compiles Helm, at the version that tools/helm names.
func Helm(ctx context.Context) (path string, err error) {
	workspace, err := run(ctx, "", "env", "GOWORK")
	if err != nil {
		return "", err
	}
	return run(ctx, filepath.Dir(workspace), "tool", "-modfile=tools/helm/go.mod", "-n", "helm")
}

// run is a command of go, without cgo and without the flags of the test that asks.
func run(ctx context.Context, folder string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if args[0] == "tool" {
		command.Env = append(command.Env, "GOWORK=off")
	}
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
