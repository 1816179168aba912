package frame

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/process"
)

// Process is a program that runs beside the measurement. Its log is a file.
type Process struct {
	*process.Process
	// Log is the path of the file with its stderr.
	Log string

	command *exec.Cmd
}

// Start starts a program. Its stdout is in the log, too, unless the command has another one.
func (b *Bench) Start(name string, command *exec.Cmd) (*Process, error) {
	log, err := os.Create(filepath.Join(b.Dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has a copy
	command.Stderr = log
	if command.Stdout == nil {
		command.Stdout = log
	}
	started, err := process.Start(name, command)
	if err != nil {
		return nil, err
	}
	return &Process{Process: started, Log: log.Name(), command: command}, nil
}

// Usage returns the CPU time and the memory of the process so far.
func (p *Process) Usage() (proc.Usage, error) { return proc.UsageOf(p.PID()) }

// AwaitExit returns the exit code.
func (p *Process) AwaitExit(ctx context.Context) (int, error) {
	select {
	case <-p.Exited():
		return p.command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// During does work while the process runs. If the process ends before, it cancels the work and returns an error.
func (p *Process) During(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.Exited():
			cancel(fmt.Errorf("%s ended by itself%s", p.Name(), process.Tail(p.Log)))
		case <-ctx.Done():
		}
	}()
	err := work(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Crash kills the process. The process may have ended before.
func (p *Process) Crash() error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// End stops the process. The process may have ended before, or p may be nil.
func (p *Process) End() error {
	if p == nil || p.Ended() {
		return nil
	}
	return p.Stop()
}
