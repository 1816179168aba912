package slapd

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the command when the test ends in any way.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
