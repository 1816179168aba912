package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// startTimeout bounds the start of one server, which takes 2 to 5 s on an idle machine of two cores, and up to
	// twenty times that on a busy one.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long a server may take to end before it is killed.
	stopTimeout = 20 * time.Second
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
