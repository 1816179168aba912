//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// setDeathWithParent does nothing: no other system than Linux ends a process with its parent.
func setDeathWithParent(*exec.Cmd) {}

// Pause returns an error: only Linux shows the state of threads.
func (p *Process) Pause(context.Context) error {
	return fmt.Errorf("pause %s: %w on %s", p.name, errors.ErrUnsupported, runtime.GOOS)
}

// Continue resumes a paused server.
func (p *Process) Continue() error {
	return fmt.Errorf("continue %s: %w on %s", p.name, errors.ErrUnsupported, runtime.GOOS)
}
