package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// cgroupRoot is where systems mount cgroups.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is one tree of cgroups. Version 2 has a single tree, without names of controllers.
type hierarchy struct {
	controllers string // as in the fourth column of its mount
	root        string // where it is mounted
	path        string // of this process, below the root
}

func (h hierarchy) unified() bool { return h.controllers == "" }

// own is the folder of the machine's cgroup, below the cgroup of this process.
func (h hierarchy) own(folder string) string {
	return filepath.Join(h.root, h.path, filepath.Base(folder))
}

// hierarchies returns those that are mounted here. Where version 1 is mounted, it leaves out version 2, which then has no controllers.
func hierarchies() ([]hierarchy, error) { return hierarchiesOf("self") }

// hierarchiesOf returns the same with the paths of another process, which is a number of /proc.
func hierarchiesOf(process string) ([]hierarchy, error) {
	file := "/proc/" + process + "/cgroup"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var first, second []hierarchy
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("read %s: unknown line %q", file, line)
		}
		h := hierarchy{controllers: fields[1], path: fields[2]}
		h.root = filepath.Join(cgroupRoot, strings.TrimPrefix(h.controllers, "name="))
		if _, err := os.Stat(filepath.Join(h.root, "cgroup.procs")); err != nil {
			continue
		}
		if h.unified() {
			second = append(second, h)
		} else {
			first = append(first, h)
		}
	}
	if len(first) > 0 {
		return first, nil
	}
	if len(second) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted in %s", cgroupRoot)
	}
	return second, nil
}

// enterCgroups makes cgroups named after the folder, moves this process into them, and makes them the root of what the calling thread
// starts. In each tree, the processes are in a cgroup below that root, because a cgroup of version 2 has processes or controllers.
func enterCgroups(all []hierarchy, folder string) error {
	for _, h := range all {
		if err := h.enter(h.own(folder)); err != nil {
			return fmt.Errorf("enter a cgroup: %w", err)
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a namespace of cgroups: %w", err)
	}
	for _, h := range all {
		if !h.unified() {
			continue
		}
		leaf := filepath.Join(h.own(folder), "processes")
		if err := h.enter(leaf); err != nil {
			return fmt.Errorf("enter a cgroup: %w", err)
		}
	}
	return nil
}

// MakeCgroup makes a cgroup of the machine, in all trees.
func MakeCgroup(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.mkdir(filepath.Join(h.root, name)); err != nil {
			return fmt.Errorf("make a cgroup: %w", err)
		}
	}
	return nil
}

// enter makes a cgroup, and moves this process into it.
func (h hierarchy) enter(cgroup string) error {
	if err := h.mkdir(cgroup); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0)
}

func (h hierarchy) mkdir(cgroup string) error {
	if err := os.Mkdir(cgroup, 0o750); err != nil {
		return err
	}
	// A new cgroup of version 1 has neither processors nor memory nodes until someone writes them.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		parent, err := os.ReadFile(filepath.Join(filepath.Dir(cgroup), file))
		if errors.Is(err, fs.ErrNotExist) || h.unified() {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(cgroup, file), bytes.TrimSpace(parent), 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ExhaustMemory starts a second program in the cgroup of a process, which takes memory until the cgroup is at its limit and the kernel kills
// the process. It returns when the process is gone; a process without a limit is never killed.
func ExhaustMemory(ctx context.Context, pid int) error {
	all, err := hierarchiesOf(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(h hierarchy) bool {
		return h.unified() || slices.Contains(strings.Split(h.controllers, ","), "memory")
	})
	if i < 0 {
		return fmt.Errorf("process %d has no cgroup of memory", pid)
	}
	process := fmt.Sprintf("/proc/%d", pid)
	// The kernel takes the process with the highest number.
	if err := os.WriteFile(filepath.Join(process, "oom_score_adj"), []byte("1000"), 0); err != nil {
		return err
	}
	// A file of zeros has no line, so that tail keeps all of it.
	hungry := exec.CommandContext(ctx, "sh", "-c", `echo $$ >"$0/cgroup.procs" && exec tail /dev/zero`, filepath.Join(all[i].root, all[i].path))
	if err := hungry.Start(); err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := os.Stat(process)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	})
	_ = hungry.Process.Kill()
	_ = hungry.Wait()
	return err
}
