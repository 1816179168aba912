package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Ended is a command that has ended, with its output, CPU time and memory.
type Ended struct {
	Stdout, Stderr []byte
	Code           int
	Took           time.Duration
	CPU            float64 // seconds
	// PeakRSS is read every few milliseconds and when the first byte of the output arrives. It is exact if the command prints
	// at its end more than a pipe buffers; otherwise it lacks what the command allocates in its last milliseconds.
	PeakRSS int64 // bytes
}

// samplePeriod is short compared with the tenths of a second that a command takes. A sample costs some 40 microseconds.
const samplePeriod = 20 * time.Millisecond

// Run runs a command, and kills it when ctx ends. An exit code other than 0 is no error.
func Run(ctx context.Context, cmd *exec.Cmd) (Ended, error) {
	var stderr, text bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Ended{}, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return Ended{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	stop := samplePeak(cmd.Process.Pid)
	_, first := io.CopyN(&text, stdout, 1)
	usage, _ := UsageOf(cmd.Process.Pid) // fails if the process has ended
	_, others := io.Copy(&text, stdout)
	peak := max(usage.PeakRSS, stop()) // before Wait, after which another process may get the PID
	_ = cmd.Wait()                     // the state has the exit code
	e := Ended{
		Stdout: text.Bytes(), Stderr: stderr.Bytes(), Code: cmd.ProcessState.ExitCode(), Took: time.Since(began),
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), PeakRSS: peak,
	}
	if err := errors.Join(context.Cause(ctx), first, others); err != nil {
		return e, fmt.Errorf("read what %s printed: %w\n%s", cmd, err, stderr.Bytes())
	}
	return e, nil
}

// samplePeak reads the peak of a process until the caller calls stop, which returns the last peak.
func samplePeak(pid int) (stop func() int64) {
	stopping, peak := make(chan struct{}), make(chan int64)
	go func() {
		var last int64
		for {
			if usage, err := UsageOf(pid); err == nil {
				last = usage.PeakRSS
			}
			select {
			case <-stopping:
				peak <- last
				return
			case <-time.After(samplePeriod):
			}
		}
	}()
	return func() int64 {
		close(stopping)
		return <-peak
	}
}
