package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/godwit-dev/godwit/test/program"
)

// TestStartLeavesTheHomeFolderEmpty: a package that the program imports may create folders as soon as it starts, as envtest
// does. The program must start where it can write nothing.
func TestStartLeavesTheHomeFolderEmpty(t *testing.T) {
	t.Parallel()
	path, err := program.Godwit(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--help"}, {"version", "--client"}, {"crd", "--help"}, {"explain"}, {"completion", "bash"}, {"__complete", "crd", ""}} {
		home := t.TempDir()
		command := exec.CommandContext(t.Context(), path, args...)
		command.Dir, command.Env = home, []string{"HOME=" + home}
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
			t.Errorf("%v leaves %v in the home folder: %v", args, left, err)
		}
	}
}
