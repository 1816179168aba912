package controlplane

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

// pollInterval is short compared with the seconds that a server takes to start, and does not slow it down.
const pollInterval = 50 * time.Millisecond

// serverGOGC lets a server's heap grow to four times its live size before a collection. With Go's default of twice, garbage
// collection took a third of an API server's CPU time in our tests.
const serverGOGC = "GOGC=300"

// process is a server that this package started itself, not through envtest.
type process struct {
	name    string
	command *exec.Cmd
	paused  atomic.Bool
	exited  chan struct{} // closed when the process has ended
	failure error         // why it ended; valid once exited is closed
	stop    func() error
}

// run starts a server and returns when it is ready. It stops a server that does not become ready.
func (cp *ControlPlane) run(ctx context.Context, name string, command *exec.Cmd, ready func(context.Context) error) (*process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.checkStartable(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for _, other := range cp.started {
		if other.name == name && !other.ended() {
			return nil, fmt.Errorf("start %s: it runs already", name)
		}
	}
	out, err := cp.logs.open(name)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = out, out
	command.Env = append(command.Environ(), serverGOGC)
	setDeathWithParent(command)
	p := &process{name: name, command: command, exited: make(chan struct{})}
	p.stop = sync.OnceValue(p.end)
	if err := onLastingThread(cp.finished, command.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.failure = command.Wait()
		close(p.exited)
	}()
	if err := p.await(ctx, name+" to be ready", ready); err != nil {
		// Its log has more than the error of the stop.
		_ = p.stop()
		return nil, fmt.Errorf("start %s: %w%s", name, err, cp.logs.tail(name))
	}
	cp.started = append(cp.started, p)
	return p, nil
}

// await polls until the server is ready, or has ended.
func (p *process) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(fmt.Errorf("it ended by itself: %v", p.failure)) //nolint:errorlint // nil after an orderly end
		case <-ctx.Done():
		}
	}()
	return poll(ctx, what, ready)
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// end asks the server to finish, and kills it if it does not or cannot.
func (p *process) end() error {
	if p.ended() {
		return fmt.Errorf("stop %s: it had ended by itself: %v", p.name, p.failure) //nolint:errorlint // nil after an orderly end
	}
	if p.paused.Load() {
		err := p.command.Process.Kill()
		<-p.exited
		return err
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, err), p.command.Process.Kill())
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
		err := p.command.Process.Kill()
		<-p.exited
		return errors.Join(fmt.Errorf("stop %s: killed after %s", p.name, stopTimeout), err)
	}
}

// poll calls check until it succeeds, startTimeout has passed or ctx is done, and then returns the last error of check.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
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

// onLastingThread runs start on a thread that lives until finished is closed. To the kernel, a process loses its parent when
// the thread ends that started it, and Go ends a thread when a goroutine returns that has locked it.
func onLastingThread(finished <-chan struct{}, start func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		result <- start()
		<-finished
	}()
	return <-result
}
