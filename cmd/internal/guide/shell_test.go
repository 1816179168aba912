package guide_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mark is printed after each command, with its exit code.
const mark = "---- end of command "

// shell is one session, in which a command sees the exit code of the one
// before it.
type shell struct {
	t      *testing.T
	input  io.Writer
	output *bufio.Reader
}

func startShell(t *testing.T, dir string, env []string) *shell {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh")
	command.Dir, command.Env = dir, env
	// What a guide starts in the background, and has not ended, ends with the test.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait() // exits with the code of the last command
		awaitEnd(t, command.Process.Pid)
	})
	return &shell{t: t, input: input, output: bufio.NewReader(output)}
}

// awaitEnd waits for the shell's process group: the control plane must not go
// first. The context of the test, which has ended, has told it to end.
func awaitEnd(t *testing.T, group int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(-group, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-group, syscall.SIGKILL)
			t.Log("a process that the guide started in the background did not end within 10 s, or no parent waits for it")
			return
		}
	}
}

// run returns what a command printed, on stdout and stderr, and its exit code.
// The braces keep it from reading the commands that follow as its input.
func (s *shell) run(command string) (printed string, code int) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.input, "{ %s\n} </dev/null\ncode=$?; printf '\\n%s%%d\\n' $code; (exit $code)\n", command, mark)
	if err != nil {
		s.t.Fatal(err)
	}
	var text strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the shell ends in `%s`: %v\n%s", command, err, text.String())
		}
		if rest, ok := strings.CutPrefix(line, mark); ok {
			if _, err := fmt.Sscan(rest, &code); err != nil {
				s.t.Fatal(err)
			}
			return strings.TrimSuffix(text.String(), "\n"), code // the newline before the mark
		}
		text.WriteString(line)
	}
}

func TestShell(t *testing.T) {
	s := startShell(t, t.TempDir(), nil)
	for _, c := range []struct {
		command, printed string
		code             int
	}{
		{"echo a; echo b >&2", "a\nb\n", 0},
		{"printf c", "c", 0},
		{"(exit 3)", "", 3},
		{"echo $?", "3\n", 0},
		{"cat", "", 0},
		{"D=1", "", 0},
		{"echo $D \\\n  2", "1 2\n", 0},
	} {
		if printed, code := s.run(c.command); printed != c.printed || code != c.code {
			t.Errorf("`%s` printed %q and exits with %d, want %q and %d", c.command, printed, code, c.printed, c.code)
		}
	}
}

// TestShellLeavesNothingRunning that a guide started and did not end.
func TestShellLeavesNothingRunning(t *testing.T) {
	dir := t.TempDir()
	t.Run("a guide", func(t *testing.T) {
		s := startShell(t, dir, []string{"PATH=" + os.Getenv("PATH")})
		s.run(`sh -c 'trap "touch ended; exit" TERM; touch begun; while :; do sleep 0.1; done' >/dev/null 2>&1 &`)
		s.run("until [ -e begun ]; do sleep 0.1; done")
	})
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
		t.Errorf("what runs in the background was not told to end: %v", err)
	}
}
