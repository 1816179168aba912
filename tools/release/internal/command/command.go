// Package command runs other programs.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command is a program that runs in a folder.
type Command struct {
	Dir string
	// Env is added to the environment of this process.
	Env   []string
	Stdin string
}

// Run returns what the program printed on stdout. The error has what it printed on stderr, in one line.
func (c Command) Run(ctx context.Context, name string, args ...string) (string, error) {
	program := exec.CommandContext(ctx, name, args...)
	program.Dir, program.Env = c.Dir, append(os.Environ(), c.Env...)
	program.Stdin = strings.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	program.Stdout, program.Stderr = &stdout, &stderr
	err := program.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not in PATH: install it", name)
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return stdout.String(), nil
}

// Line is like [Command.Run], but removes white space from both ends of the output.
func (c Command) Line(ctx context.Context, name string, args ...string) (string, error) {
	out, err := c.Run(ctx, name, args...)
	return strings.TrimSpace(out), err
}
