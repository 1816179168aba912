package machine

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Remains returns what is there of the machine with the folder: processes, mounts, cgroups and the folder. It leaves out the calling
// process. A test calls it from outside the machine.
func Remains(folder string) ([]string, error) {
	var found []string
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if p == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		for file, what := range map[string]string{"environ": "process", "cmdline": "process", "mounts": "mounts of process"} {
			content, err := os.ReadFile(filepath.Join(p, file))
			if err == nil && strings.Contains(string(content), folder) { // else the process has ended meanwhile
				found = append(found, what+" "+filepath.Base(p))
			}
		}
	}
	err = filepath.WalkDir(cgroupRoot, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == filepath.Base(folder) { // else it was removed meanwhile
			found = append(found, "cgroup "+path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(folder); err == nil {
		found = append(found, "folder "+folder)
	}
	return found, nil
}

// listening is the state of a socket in /proc/net/tcp that accepts connections (TCP_LISTEN in include/net/tcp_states.h).
const listening = "0A"

// Network returns the interfaces and the TCP listeners of the network of the calling process. What a machine within this one has is not
// among them.
func Network() ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, i := range interfaces {
		found = append(found, "interface "+i.Name)
	}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		sockets, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(sockets)) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[3] == listening {
				found = append(found, "listener "+fields[1])
			}
		}
	}
	return found, nil
}
