package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/godwit-dev/godwit/test/process"
)

// underHostname is a script of sh. $0 is the host name, and the arguments are the server's command line. The server replaces sh,
// so it has the process id of sh. The first line prevents that a mistake as root renames the machine itself. The script tries
// hostname(1) before /proc, because /proc refuses the root of a user namespace.
const underHostname = `[ "$(readlink /proc/self/ns/uts)" != "$(readlink "/proc/$PPID/ns/uts")" ] || exit 1
{ hostname "$0" || echo "$0" >/proc/sys/kernel/hostname; } && exec "$@"`

// dyingWithParent returns a program that runs binary and that the kernel kills with its parent. envtest would leave its servers
// running when a test panics or times out. Without setpriv(1) of util-linux it returns binary itself.
func dyingWithParent(dir, binary string) (string, error) {
	if err := exec.Command("setpriv", "--pdeathsig", "KILL", "true").Run(); err != nil {
		return binary, nil
	}
	quoted := "'" + strings.ReplaceAll(binary, "'", `'\''`) + "'"
	script := "#!/bin/sh\n" + process.GOGC + " exec setpriv --pdeathsig KILL " + quoted + ` "$@"` + "\n"
	path := filepath.Join(dir, "start-"+filepath.Base(binary))
	// A process forked meanwhile would have the script open for writing, and executing it would fail with "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the starter of %s: %w", filepath.Base(binary), err)
	}
	return path, nil
}

// onHost makes the command run under another host name, which no other process sees. Only root may do so directly. Another
// user becomes root in a user namespace, with the same access to files and processes as before.
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
