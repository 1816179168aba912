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

	"github.com/godwit-dev/godwit/test/process"
)

// child is the program of a contestant under way. Its parent reads its stdout, and its log is a file.
type child struct {
	*process.Process
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *output
	log     string
}

// run starts a program with its stderr in a file of dir.
func run(dir, name string, command *exec.Cmd) (*child, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has a copy
	c := &child{command: command, stdout: &output{line: make(chan struct{})}, log: log.Name()}
	command.Stdout, command.Stderr = c.stdout, log
	if c.stdin, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Process, err = process.Start(name, command); err != nil {
		return nil, err
	}
	return c, nil
}

// awaitLine returns when the program has printed its first line.
func (c *child) awaitLine(ctx context.Context) error {
	select {
	case <-c.stdout.line:
		return nil
	case <-c.Exited():
		return fmt.Errorf("%s ended before it was ready:%s", c.Name(), c.tail())
	case <-ctx.Done():
		return fmt.Errorf("wait for %s to be ready: %w", c.Name(), context.Cause(ctx))
	}
}

// awaitEnd returns the exit code.
func (c *child) awaitEnd(ctx context.Context) (int, error) {
	select {
	case <-c.Exited():
		return c.command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// during returns the error of wait, or that the process ended meanwhile.
func (c *child) during(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.Exited():
			cancel(fmt.Errorf("%s ended by itself:%s", c.Name(), c.tail()))
		case <-ctx.Done():
		}
	}()
	return wait(ctx)
}

// crash kills a process, which may have ended.
func (c *child) crash() error {
	if err := c.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// end stops a process, which may have ended.
func (c *child) end() error {
	if c == nil || c.Ended() {
		return nil
	}
	return c.Stop()
}

func (c *child) tail() string { return process.Tail(c.log) }

// output keeps what a program prints, and tells its first line.
type output struct {
	text bytes.Buffer
	line chan struct{}
	told bool
}

func (o *output) Write(p []byte) (int, error) {
	if !o.told && bytes.ContainsRune(p, '\n') {
		o.told = true
		close(o.line)
	}
	return o.text.Write(p)
}

// build compiles a program of tools/peers with the libraries of its own module.
func build(ctx context.Context, dir, name string) (string, error) {
	binary, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	command.Dir = filepath.Join(peerModules, name)
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if said, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build %s: %w: %s", command.Dir, err, strings.TrimSpace(string(said))), context.Cause(ctx))
	}
	return binary, nil
}

// peerModules is relative to the folder of this module, as the defaults of the flags are.
const peerModules = "../tools/peers"
