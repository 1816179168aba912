package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// namespaces of a machine. init makes the one of cgroups, when it is in the machine's cgroups.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// start runs the program of this test again as the first process of a machine, and returns its exit code.
func start(ctx context.Context) (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("only root can make its namespaces, mounts and cgroups: run these tests as root")
	}
	folder, err := os.MkdirTemp("", "godwit-machine-")
	if err != nil {
		return 0, err
	}
	end, err := startSweep(ctx, folder)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(folder))
	}
	defer func() { err = errors.Join(err, end()) }()

	first, err := again(ctx, roleInit, folder)
	if err != nil {
		return 0, err
	}
	first.Stdin, first.Stdout, first.Stderr = os.Stdin, os.Stdout, os.Stderr
	// For the kernel, the parent is the thread: it must not end before the machine does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	err = first.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.Exited() {
		return failed.ExitCode(), nil
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("run its first process: %w (it needs root with CAP_SYS_ADMIN, and a kernel with namespaces)", err)
	}
	return 0, nil
}

// startSweep starts the process that cleans up once this process has ended in any way, or has called end. It does not end with the
// context, and does not get a Ctrl-C of the terminal. It does not keep the output of this process open, because go test waits until all have closed it.
func startSweep(ctx context.Context, folder string) (end func() error, err error) {
	command, err := again(context.WithoutCancel(ctx), roleSweep, folder)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	command.Stderr = &said
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = alive.Close() // the process has ended, if this fails
		if err := command.Wait(); err != nil {
			return fmt.Errorf("clean up: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	}, nil
}
