package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tunables are settings of the kernel that a kubelet changes (setupKernelTunables in k8s.io/kubernetes/pkg/kubelet/cm). They have no
// namespace, so that of this machine is a plain file with the same content.
var tunables = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// mountAll replaces what a machine has of its own: no mount gets out, and kernel file systems show the machine's namespaces.
func mountAll(folder string, cgroups []hierarchy) error {
	m := &mounter{}
	m.mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	// A kubelet propagates mounts into containers.
	m.mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
	m.mount("proc", "/proc", "proc", 0, "")
	m.mount("sysfs", "/sys", "sysfs", 0, "")
	m.mountCgroups(cgroups)
	m.mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
	m.overlay("/var", filepath.Join(folder, "var"))
	m.coverTunables(filepath.Join(folder, "tunables"))
	return m.err
}

// mounter keeps the first error.
type mounter struct{ err error }

func (m *mounter) mount(source, target, kind string, flags uintptr, data string) {
	if m.err != nil {
		return
	}
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		m.err = fmt.Errorf("mount %s: %w", target, err)
	}
}

func (m *mounter) mkdir(path string) {
	if m.err == nil {
		m.err = os.MkdirAll(path, 0o755) //nolint:gosec // as folders of a system are
	}
}

// mountCgroups mounts the trees in the namespace of cgroups of this thread, so that each shows the machine's own cgroup as its root.
func (m *mounter) mountCgroups(all []hierarchy) {
	if all[0].unified() {
		m.mount("cgroup", cgroupRoot, "cgroup2", 0, "")
		return
	}
	m.mount("tmpfs", cgroupRoot, "tmpfs", 0, "mode=755")
	for _, h := range all {
		m.mkdir(h.root)
		m.mount("cgroup", h.root, "cgroup", 0, h.controllers)
		if names := strings.Split(h.controllers, ","); len(names) > 1 {
			for _, name := range names {
				m.symlink(h.controllers, filepath.Join(cgroupRoot, name))
			}
		}
	}
}

func (m *mounter) symlink(to, at string) {
	if m.err == nil {
		m.err = os.Symlink(to, at)
	}
}

// overlay keeps what is written below a folder of the system in the folder of the machine.
func (m *mounter) overlay(at, folder string) {
	upper, work := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
	m.mkdir(upper)
	m.mkdir(work)
	m.mount("overlay", at, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at, upper, work))
}

func (m *mounter) coverTunables(folder string) {
	m.mkdir(folder)
	for _, name := range tunables {
		at := "/proc/sys/" + name
		content, err := os.ReadFile(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		instead := filepath.Join(folder, filepath.Base(name))
		if err == nil {
			err = os.WriteFile(instead, content, 0o600)
		}
		if m.err == nil {
			m.err = err
		}
		m.mount(instead, at, "", syscall.MS_BIND, "")
	}
}
