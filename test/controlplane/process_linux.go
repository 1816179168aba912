package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// underHostname is a script of sh, with the name as $0 and the server's command line after it. The server replaces sh and
// so has its process id. The first line prevents that a mistake as root renames the machine itself. hostname(1) comes
// before /proc, which refuses the root of a user namespace.
const underHostname = `[ "$(readlink /proc/self/ns/uts)" != "$(readlink "/proc/$PPID/ns/uts")" ] || exit 1
{ hostname "$0" || echo "$0" >/proc/sys/kernel/hostname; } && exec "$@"`

// setDeathWithParent makes the kernel kill the command when our process ends in any way. With a process group of its own
// the command does not get a Ctrl-C of the terminal: Stop ends the servers in order.
func setDeathWithParent(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	command.SysProcAttr.Setpgid = true
}

// dyingWithParent returns a program to start instead of binary, for envtest, which would leave its servers running when a
// test panics or times out. Without setpriv(1) of util-linux it returns binary itself.
func dyingWithParent(dir, binary string) (string, error) {
	if err := exec.Command("setpriv", "--pdeathsig", "KILL", "true").Run(); err != nil {
		return binary, nil
	}
	quoted := "'" + strings.ReplaceAll(binary, "'", `'\''`) + "'"
	script := "#!/bin/sh\n" + serverGOGC + " exec setpriv --pdeathsig KILL " + quoted + ` "$@"` + "\n"
	path := filepath.Join(dir, "start-"+filepath.Base(binary))
	// A process forked meanwhile would have the script open for writing, and executing it would fail with "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the starter of %s: %w", filepath.Base(binary), err)
	}
	return path, nil
}

// onHost makes the command run under another host name, which no other process sees. Only root may do so directly; any other
// user becomes root in a user namespace, where files and signals stay those of the user.
func onHost(hostname string, command *exec.Cmd) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return fmt.Errorf("find a shell to set the host name: %w", err)
	}
	command.Args = append([]string{"sh", "-c", underHostname, hostname, command.Path}, command.Args[1:]...)
	command.Path = shell
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return nil
}

// pause returns when every thread has stopped: the signal takes time, and the server could handle one more request.
func (p *process) pause(ctx context.Context) error {
	p.paused.Store(true)
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", p.name, err)
	}
	return poll(ctx, "all threads to stop", func(context.Context) error {
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

func (p *process) resume() error {
	if err := p.command.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue %s: %w", p.name, err)
	}
	p.paused.Store(false)
	return nil
}
