package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// StartTimeout bounds the start of one server, which takes 2 to 5 s on an idle machine of two cores, and up to
	// thirty times that on a busy one.
	StartTimeout = 5 * time.Minute
	// StopTimeout is the time that a server has to end before it is killed.
	StopTimeout = time.Minute
	// GOGC is an environment variable with which a server's heap grows to nine times its live size before a
	// collection. With Go's default of twice, garbage collection took a third of an API server's CPU time in our tests, and
	// with four times, tests took an eighth more CPU time than with nine. The price is memory: API servers reach 1 to 2 GiB.
	GOGC = "GOGC=800"

	// pollInterval is short compared with the seconds that a server takes to start, and does not slow it down.
	pollInterval = 50 * time.Millisecond
)

// Process is a running server.
type Process struct {
	name    string
	command *exec.Cmd
	paused  atomic.Bool
	killed  atomic.Bool
	exited  chan struct{} // closed when the process has ended
	failure error         // why it ended; valid once exited is closed
	stop    func() error
}

// Start starts a server. The command says where its output goes. The name is for errors.
func Start(name string, command *exec.Cmd) (*Process, error) {
	setDeathWithParent(command)
	p := &Process{name: name, command: command, exited: make(chan struct{})}
	p.stop = sync.OnceValue(p.end)
	if err := OnLastingThread(p.exited, command.Start); err != nil {
		close(p.exited)
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.failure = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Name returns the name that Start got.
func (p *Process) Name() string { return p.name }

// PID returns the ID of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Await polls until the server is ready, or has ended.
func (p *Process) Await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(fmt.Errorf("it ended by itself: %v", p.failure)) //nolint:errorlint // nil after an orderly end
		case <-ctx.Done():
		}
	}()
	return Poll(ctx, what, ready)
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Stop asks the server to end, and kills it after StopTimeout. It kills a paused server at once, so that the server never
// handles its queued requests. Stop returns an error if the server had ended by itself, and not by Kill. It may be called again.
func (p *Process) Stop() error { return p.stop() }

func (p *Process) end() error {
	if p.Ended() && !p.killed.Load() {
		return fmt.Errorf("stop %s: it had ended by itself: %v", p.name, p.failure) //nolint:errorlint // nil after an orderly end
	}
	if p.Ended() {
		return nil
	}
	if p.paused.Load() {
		return p.Kill()
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, err), p.command.Process.Kill())
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(StopTimeout):
		return errors.Join(fmt.Errorf("stop %s: killed after %s", p.name, StopTimeout), p.Kill())
	}
}

// Kill ends the server as a crash would, and returns when it has ended.
func (p *Process) Kill() error {
	p.killed.Store(true)
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// Poll calls check until it succeeds, StartTimeout has passed or ctx is done, and then returns the last error of check.
func Poll(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		// The error of a canceled call has less information than the one before it.
		if err := check(ctx); err == nil {
			return nil
		} else if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// OnLastingThread runs start on a thread that lives until finished is closed. For the kernel, the parent of a process is the
// thread that started it, and Go ends a thread when a goroutine that has locked the thread returns.
func OnLastingThread(finished <-chan struct{}, start func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		result <- start()
		<-finished
	}()
	return <-result
}
