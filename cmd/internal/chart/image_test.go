//go:build linux

package chart_test

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// nonroot is the image's user.
const nonroot = 65532

// TestImage: what the Dockerfile compiles is all that the image holds. It runs in
// a folder with nothing else, as the user that the Dockerfile names, without an
// environment.
func TestImage(t *testing.T) {
	d := readDockerfile(t)
	for instruction, want := range map[string]string{
		"COPY --from": "=build /godwit /godwit", "ENTRYPOINT": `["/godwit"]`, "FROM": "scratch",
		"USER": fmt.Sprintf("%d:%[1]d", nonroot), // a number, or a kubelet can't tell that it is not root
	} {
		if got := d.last(instruction); got != want {
			t.Errorf("the image's last %s is %q, want %q", instruction, got, want)
		}
	}
	image := newImage(t)
	mustBeStatic(t, filepath.Join(image, "godwit"))
	command := inside(image, "version")
	out, err := command.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "godwit v1.2.3,") {
		t.Errorf("it printed %q: %v", out, err)
	}
}

// mustBeStatic: nothing is linked when it starts, since there is nothing to link.
func mustBeStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_INTERP {
			t.Errorf("it is linked dynamically: %v", p.Type)
		}
	}
}

// newImage is a folder with what the image has, and nothing else. Each is a test's
// own, to add what a pod mounts.
func newImage(t *testing.T) string {
	t.Helper()
	compiled := filepath.Join(scratch(t), "image") // beside the godwit of tests, which has other tags
	compileImage.Do(func() { readDockerfile(t).compile(t, compiled) })
	image := t.TempDir()
	if err := os.Chmod(image, 0o755); err != nil { // the image's user may read it
		t.Fatal(err)
	}
	if err := os.Link(compiled, filepath.Join(image, "godwit")); err != nil {
		t.Fatalf("was the image's program compiled? %v", err)
	}
	return image
}

var compileImage sync.Once

// inside is the image's program, where it sees nothing but the image, as the user
// that the Dockerfile names, who may write nowhere in it. Who is not root makes a
// user namespace for that, where it is allowed.
func inside(image string, args ...string) *exec.Cmd {
	command := exec.Command("/godwit", args...)
	command.Env, command.Dir = []string{}, "/"
	attr := &syscall.SysProcAttr{Chroot: image}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nonroot, Gid: nonroot}
	} else {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nonroot, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nonroot, HostID: os.Getgid(), Size: 1}}
	}
	command.SysProcAttr = attr
	return command
}
