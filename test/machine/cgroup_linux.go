package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
func hierarchies() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var first, second []hierarchy
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("read /proc/self/cgroup: unknown line %q", line)
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
