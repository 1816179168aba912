package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/process"
)

// child is the program of a contestant. Its parent writes to its stdin and reads its stdout.
type child struct {
	*frame.Process
	stdin  io.WriteCloser
	stdout *output
}

func start(b *frame.Bench, name string, command *exec.Cmd) (*child, error) {
	c := &child{stdout: &output{line: make(chan struct{})}}
	command.Stdout = c.stdout
	var err error
	if c.stdin, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Process, err = b.Start(name, command); err != nil {
		return nil, err
	}
	return c, nil
}

// awaitLine returns when the program has printed its first line.
func (c *child) awaitLine(ctx context.Context) error {
	return c.During(ctx, func(ctx context.Context) error {
		select {
		case <-c.stdout.line:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w", c.Name(), context.Cause(ctx))
		}
	})
}

func (c *child) tail() string { return process.Tail(c.Log) }

// end stops the program. The program may have ended before, or may never have started.
func (c *child) end() error {
	if c == nil {
		return nil
	}
	return c.End()
}

// output keeps what a program prints, and closes line after the first line.
type output struct {
	text    bytes.Buffer
	line    chan struct{}
	hasLine bool
}

func (o *output) Write(p []byte) (int, error) {
	if !o.hasLine && bytes.ContainsRune(p, '\n') {
		o.hasLine = true
		close(o.line)
	}
	return o.text.Write(p)
}

// peerModules is relative to the folder of this module, as the defaults of the flags are.
const peerModules = "../tools/peers"

// build compiles a program of tools/peers with the libraries of its own module.
func build(ctx context.Context, dir, name string) (string, error) {
	binary := filepath.Join(dir, name)
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	command.Dir = filepath.Join(peerModules, name)
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if text, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build %s: %w: %s", command.Dir, err, strings.TrimSpace(string(text))), context.Cause(ctx))
	}
	return binary, nil
}
