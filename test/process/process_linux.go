package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// setDeathWithParent makes the kernel kill the command when this process ends in any way. The command has its own process
// group, so that it does not get a Ctrl-C of the terminal: Stop ends the servers in order.
func setDeathWithParent(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	command.SysProcAttr.Setpgid = true
}

// Pause freezes the server like a machine that hangs. It returns when every thread has stopped, because until then the server
// could handle one more request.
func (p *Process) Pause(ctx context.Context) error {
	p.paused.Store(true)
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", p.name, err)
	}
	return Poll(ctx, "all threads to stop", func(context.Context) error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.command.Process.Pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			// The state follows the program's name, which is in parentheses and may itself contain some.
			if end := bytes.LastIndexByte(stat, ')'); err == nil && !bytes.HasPrefix(stat[end+1:], []byte(" T")) {
				return fmt.Errorf("%s: %s", thread, stat)
			}
		}
		return nil
	})
}

// Continue resumes a paused server.
func (p *Process) Continue() error {
	if err := p.command.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue %s: %w", p.name, err)
	}
	p.paused.Store(false)
	return nil
}
