package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Ended is a command that has ended, with what it has cost.
type Ended struct {
	Stdout, Stderr []byte
	Code           int
	Took           time.Duration
	CPU            float64 // seconds
	// PeakRSS is read when the first byte of the output arrives; 0 if the process had ended by then. It is the peak of the
	// process if the output is written at its end, and larger than what a pipe buffers.
	PeakRSS int64 // bytes
}

// Run runs a command. An exit code other than 0 is no error.
func Run(cmd *exec.Cmd) (Ended, error) {
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
	_, first := io.CopyN(&text, stdout, 1)
	usage, _ := UsageOf(cmd.Process.Pid) // of one that has ended there is none
	_, others := io.Copy(&text, stdout)
	_ = cmd.Wait() // the state says how it ended
	e := Ended{
		Stdout: text.Bytes(), Stderr: stderr.Bytes(), Code: cmd.ProcessState.ExitCode(), Took: time.Since(began),
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), PeakRSS: usage.PeakRSS,
	}
	if err := errors.Join(first, others); err != nil {
		return e, fmt.Errorf("read what %s printed: %w\n%s", cmd, err, stderr.Bytes())
	}
	return e, nil
}
