//go:build linux

package machine_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/process"
)

// The variable tells TestHold to do what a test on a machine may do, and to wait.
const holdVariable = "GODWIT_TEST_MACHINE_HOLD"

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 && os.Getenv("CI") != "true" {
		fmt.Println("skipped: only root can make a machine of its own for tests")
		return
	}
	os.Exit(machine.Main(context.Background(), m))
}

// TestMachine: a machine shows nothing of that on which it runs.
func TestMachine(t *testing.T) {
	if parent := os.Getppid(); parent != 1 {
		t.Errorf("the parent of the tests is process %d, want the first process of the machine", parent)
	}
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) != 1 || interfaces[0].Name != "lo" || interfaces[0].Flags&net.FlagUp == 0 {
		t.Errorf("interfaces are %+v, want lo alone, up: %v", interfaces, err)
	}
	for _, file := range []string{"/var/godwit-test-machine", "/run/godwit-test-machine"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile("/proc/sys/kernel/panic", []byte("12345"), 0); err != nil {
		t.Error(err)
	}
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || strings.Contains(string(cgroups), "godwit-machine") {
		t.Errorf("a cgroup of the machine is not its root: %v\n%s", err, cgroups)
	}
}

// TestEndedProcessesAreReaped: the first process is the parent of processes whose own parent has ended.
func TestEndedProcessesAreReaped(t *testing.T) {
	out, err := exec.Command("sh", "-c", "sleep 0.2 >/dev/null & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	ended := "/proc/" + strings.TrimSpace(string(out))
	err = process.Poll(t.Context(), "the process to be reaped", func(context.Context) error {
		if _, err := os.Stat(ended); err == nil {
			return fmt.Errorf("%s exists", ended)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHold does nothing but for TestKilled.
func TestHold(t *testing.T) {
	if os.Getenv(holdVariable) == "" {
		t.Skip("only TestKilled lets this test do something")
	}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "held0"}}); err != nil {
		t.Fatal(err)
	}
	before := network(t)
	if _, err := net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if now := network(t); len(now) != len(before)+1 || !slices.Contains(now, "interface held0") {
		t.Fatalf("the network is %q, want held0 and one listener more than %q: this test would find nothing", now, before)
	}
	inside := filepath.Join(machine.Folder(), "mounted")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", inside, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	cgroup := "/sys/fs/cgroup/pids/deeper"
	if _, err := os.Stat(filepath.Dir(cgroup)); err != nil {
		cgroup = "/sys/fs/cgroup/deeper" // of version 2
	}
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	// One process that ignores requests to end, and has no parent in the test.
	sleep := exec.Command("sh", "-c", "trap '' TERM HUP INT; echo $$ >"+cgroup+"/cgroup.procs; setsid sleep 3600 & wait")
	sleep.Env = append(os.Environ(), "OF_MACHINE="+machine.Folder())
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	machine.Hold()
}

// TestKilled: a machine within this one leaves nothing when the process is killed that go test has started, or when go test is killed
// itself. Its network is never seen from outside.
func TestKilled(t *testing.T) {
	for name, starter := range map[string][]string{"program": nil, "go test": machine.Shell} {
		t.Run(name, func(t *testing.T) {
			before := network(t)
			held, err := machine.StartHeld(t.Context(), holdVariable, func(line string) { t.Log("within: " + line) }, starter...)
			if err != nil {
				t.Fatal(err)
			}
			if there := remains(t, held.Folder); len(there) < 3 {
				t.Fatalf("while the machine lives, there is only %q: this test would find nothing", there)
			}
			if now := network(t); !slices.Equal(now, before) {
				t.Errorf("while the machine lives, there is %q outside of it, and %q before", now, before)
			}
			if err := held.Kill(t.Context()); err != nil {
				t.Error(err)
			}
			if now := network(t); !slices.Equal(now, before) {
				t.Errorf("after the machine, there is %q, and %q before", now, before)
			}
		})
	}
}

// TestExitCode: a failure within is a failure of the program.
func TestExitCode(t *testing.T) {
	if os.Getenv(holdVariable) == "fail" {
		t.Fatal("on purpose")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"TestExitCode": 1, "TestMachine": 0} {
		command := exec.Command(program, "-test.run=^"+name+"$")
		command.Env = append(os.Environ(), holdVariable+"=fail")
		out, _ := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d:\n%s", name, got, want, out)
		}
	}
}

func remains(t *testing.T, folder string) []string {
	t.Helper()
	there, err := machine.Remains(folder)
	if err != nil {
		t.Fatal(err)
	}
	return there
}

func network(t *testing.T) []string {
	t.Helper()
	there, err := machine.Network()
	if err != nil {
		t.Fatal(err)
	}
	return there
}
