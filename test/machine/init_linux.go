package machine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
)

// runInit is the first process of the machine: it prepares the machine, runs the tests, and is the parent of processes whose own
// parent has ended. When it returns, the kernel ends all other processes of the machine.
func runInit(ctx context.Context) (int, error) {
	// A thread has its own namespace of cgroups, which the processes get that it starts.
	runtime.LockOSThread()
	cgroups, err := hierarchies()
	if err != nil {
		return 0, err
	}
	if err := enterCgroups(cgroups, Folder()); err != nil {
		return 0, err
	}
	if err := mountAll(Folder(), cgroups); err != nil {
		return 0, err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return 0, fmt.Errorf("find its loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return 0, fmt.Errorf("set its loopback interface up: %w", err)
	}
	tests, err := again(ctx, roleTest, Folder())
	if err != nil {
		return 0, err
	}
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := tests.Start(); err != nil {
		return 0, err
	}
	return reap(tests.Process.Pid)
}

// reap waits for all processes until the one has ended, and returns its exit code.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, fmt.Errorf("wait for the tests: %w", err)
		case ended == pid && status.Signaled():
			return 0, fmt.Errorf("the tests were ended by signal %s", status.Signal())
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}
