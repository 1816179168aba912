// Package gomodule gets the files of released Go modules, for tests that read
// real CRDs and real API types. go.mod does not require these modules, since
// a module can't require two versions of another one, and must not grow for a test.
//
// It needs the go command, and reads the module cache, where the go command has
// verified the checksums. It uses no other source.
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

// Dir returns the folder of a module in the module cache. module is path@version.
// Dir downloads a module that is missing. The caller must not write to the folder.
func Dir(ctx context.Context, module string) (string, error) {
	// In an empty folder, no go.mod and no go.work changes what is downloaded.
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
	_ = json.Unmarshal(stdout.Bytes(), &got) // stdout is empty if go itself failed
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
