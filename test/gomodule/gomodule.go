// Package gomodule gets released Go modules as they are, for what reads their
// files: real CRDs and real API types. They are not dependencies, since
// a module can't require two versions of another, and must not grow for a test.
//
// It needs the go command, whose module cache has them with their checksum. It
// refuses to go anywhere else.
package gomodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Dir is the folder in the module cache of a module, given as path@version. It
// is downloaded when it is not there yet, and not to be written to.
func Dir(ctx context.Context, module string) (string, error) {
	// Where no go.mod and no workspace has a say in it.
	dir, err := os.MkdirTemp("", "godwit-module-")
	if err != nil {
		return "", fmt.Errorf("make a folder to download from: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GO111MODULE=on")
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	var got struct{ Dir, Error string }
	_ = json.Unmarshal(stdout.Bytes(), &got) // there is none when go itself failed
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("get Go module %s: the go command is not in PATH: install Go 1.26 or add it to PATH", module)
	case err != nil || got.Dir == "":
		why := strings.Join(strings.Fields(got.Error+" "+stderr.String()), " ")
		return "", fmt.Errorf("get Go module %s: %s: try it by itself: GOWORK=off go mod download %[1]s", module, why)
	}
	return got.Dir, nil
}
