package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	pollEvery = 100 * time.Millisecond
	// endTimeout is above the 30 s for which a manager waits for its runnables.
	endTimeout = 40 * time.Second
)

// operator is the running program of an example.
type operator struct {
	command *exec.Cmd
	ended   chan struct{}
	cancel  context.CancelFunc
}

// startOperator compiles the example outside the workspace, as its author would, and starts it as a user with the
// permissions of the example's markers.
func (p *play) startOperator(ctx context.Context) (*operator, error) {
	began := time.Now()
	program, err := filepath.Abs(filepath.Join(p.plane.Dir(), p.name))
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Env = p.dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s: %w\n%s", p.dir, err, out)
	}
	p.print("compiled on the libraries of its go.mod, in %s", time.Since(began).Round(time.Second))
	config, err := p.plane.AddUser(p.name)
	if err != nil {
		return nil, err
	}
	if err := p.grant(ctx, config); err != nil {
		return nil, err
	}
	kubeconfig := program + ".kubeconfig"
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	return p.start(ctx, program, "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--settle="+settle)
}

func (p *play) start(ctx context.Context, program string, args ...string) (*operator, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &operator{command: exec.CommandContext(ctx, program, args...), ended: make(chan struct{}), cancel: cancel}
	// Send SIGTERM only once: a second SIGTERM ends a manager at once.
	o.command.Cancel = func() error { return o.command.Process.Signal(syscall.SIGTERM) }
	o.command.WaitDelay = endTimeout
	log, err := o.command.StderrPipe()
	if err == nil {
		err = o.command.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p.print("$ %s --settle=%s", p.name, settle)
	go func() {
		defer close(o.ended)
		p.show(log)
		_ = o.command.Wait() // stop reads the exit code, which a canceled context hides
	}()
	return o, nil
}

// stop ends the operator, waits for it, and may be called again.
func (o *operator) stop() error {
	o.cancel()
	<-o.ended
	if state := o.command.ProcessState; !state.Success() {
		return fmt.Errorf("the operator ended with %s, want exit code 0", state)
	}
	return nil
}

// await polls until the condition is true, or the operator ends.
func (o *operator) await(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-o.ended:
			return fmt.Errorf("wait for %s: the operator ended before", what)
		case <-time.After(pollEvery):
		}
	}
}

// show prints the log of the migrator, and errors of any logger, without the fields that each line repeats.
func (p *play) show(log io.Reader) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry map[string]any
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			p.print("| %s", lines.Text()) // a panic is not JSON
			continue
		}
		if entry["controller"] != "crdmigrator" && entry["level"] != "error" {
			continue
		}
		var text strings.Builder
		fmt.Fprint(&text, entry["msg"])
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			if !slices.Contains(repeated, key) {
				value, _ := json.Marshal(entry[key]) // it was JSON before
				fmt.Fprintf(&text, " %s=%s", key, value)
			}
		}
		p.print("| %s", text.String())
	}
}

var repeated = []string{
	"level", "ts", "msg", "logger", "controller", "controllerGroup", "controllerKind", "CustomResourceDefinition",
	"namespace", "name", "reconcileID", "stacktrace", "source", "worker count",
}
