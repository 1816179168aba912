package proc

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const (
		// The name of a program may hold what separates the fields.
		stat   = "4242 (god) wit) S 1 4242 4242 0 -1 4194304 2000 0 5 0 1234 66 0 0 20 0 9 0 777 1 2 3\n"
		status = "Name:\tgodwit\nVmPeak:\t  900000 kB\nVmHWM:\t   93661 kB\nVmRSS:\t   86000 kB\nThreads:\t9\n"
	)
	cases := map[string]struct {
		reason       string
		stat, status string
		want         Usage
		fails        bool
	}{
		"Whole":     {reason: "utime and stime are in ticks of 10 ms, memory is in KiB.", stat: stat, status: status, want: Usage{CPU: 13, RSS: 86000 << 10, PeakRSS: 93661 << 10}},
		"Gone":      {reason: "A process that has ended has no memory, and zero would be a good result.", stat: stat, status: "Name:\tgodwit\nState:\tZ (zombie)\n", fails: true},
		"CutShort":  {reason: "Fields that are missing are no zeros.", stat: "4242 (godwit) S 1", status: status, fails: true},
		"NoNumber":  {reason: "Nor is what is no number.", stat: "1 (a) S 1 1 1 0 1 1 1 0 1 0 x 66 0\n", status: status, fails: true},
		"NoNumber2": {reason: "Nor is it in the other file.", stat: stat, status: "VmHWM:\t none\nVmRSS:\t none\n", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.stat, c.status)
			if (err != nil) != c.fails {
				t.Fatalf("%s\ngot error %v", c.reason, err)
			}
			if !c.fails && got != c.want {
				t.Errorf("%s\ngot %+v, want %+v", c.reason, got, c.want)
			}
		})
	}
}

// TestRun: a command whose output fills the pipe still runs when its memory is read. Its exit code is no error.
func TestRun(t *testing.T) {
	e, err := Run(t.Context(), exec.Command("sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo why >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Stdout) != 200_000 || strings.TrimSpace(string(e.Stderr)) != "why" || e.Code != 3 || e.PeakRSS == 0 || e.Took <= 0 {
		t.Errorf("%d bytes, stderr %q, code %d, peak of %d bytes, took %v", len(e.Stdout), e.Stderr, e.Code, e.PeakRSS, e.Took)
	}
	if _, err := Run(t.Context(), exec.Command("sh", "-c", "echo why >&2; exit 2")); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a command that prints nothing: %v, want an error with what it wrote to stderr", err)
	}
}

// TestRunShortOutput: the memory of a command is known that has ended when its output is read.
func TestRunShortOutput(t *testing.T) {
	for range 20 {
		e, err := Run(t.Context(), exec.Command("sh", "-c", "sleep 0.05; echo x"))
		if err != nil {
			t.Fatal(err)
		}
		if e.PeakRSS == 0 {
			t.Fatal("the peak of a command with a short output is 0")
		}
	}
}

// TestRunCanceled: a command that does not end is killed.
func TestRunCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := Run(ctx, exec.Command("sleep", "60")); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
}

// TestChild finds the only child of a name.
func TestChild(t *testing.T) {
	if _, err := Child("sleep"); err == nil {
		t.Error("a child that does not run was found")
	}
	command := exec.CommandContext(t.Context(), "sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	defer func() { _ = command.Process.Kill() }()
	if pid, err := Child("sleep"); err != nil || pid != command.Process.Pid {
		t.Errorf("got %d, %v, want %d", pid, err, command.Process.Pid)
	}
}
