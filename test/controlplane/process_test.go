package controlplane_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// processesOf lists the programs whose command line names the folder of a control plane, as those of all its servers do.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are read from /proc")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		// A process may have ended since; a zombie has no command line.
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(dir)) {
			program, _, _ := strings.Cut(string(line), "\x00")
			found = append(found, filepath.Base(program))
		}
	}
	return found
}

// TestDiesWithParent kills the parent: after a panic or a timeout, a test does not call Stop either.
func TestDiesWithParent(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("etcd and the first API server need setpriv to die with their parent")
	}
	dir := filepath.Join(t.TempDir(), "parent")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentDir+"="+dir)
	parent.Stderr = os.Stderr
	ready, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatalf("wait for the parent to be ready: %v", err)
	}
	if running := processesOf(t, dir); len(running) != 4 {
		t.Errorf("servers before the parent's end = %q, want 4", running)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // returns "signal: killed"

	eventually(t, "the servers to die", func() bool { return len(processesOf(t, dir)) == 0 })
}

// waitToBeKilled is the parent in TestDiesWithParent.
func waitToBeKilled(dir string) {
	ctx := context.Background()
	cp, err := controlplane.Start(ctx, controlplane.Options{Dir: dir})
	if err == nil {
		_, err = cp.StartSecond(ctx, "second")
	}
	if err == nil {
		_, err = cp.StartControllerManager(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}
