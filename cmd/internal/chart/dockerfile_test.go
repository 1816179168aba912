//go:build linux

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// dockerfile is its instructions, each on one line.
type dockerfile []string

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var d dockerfile
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	for line := range strings.Lines(joined) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			d = append(d, line)
		}
	}
	return d
}

// last is what follows an instruction where it stands last.
func (d dockerfile) last(instruction string) string {
	for _, line := range slices.Backward(d) {
		if rest, ok := strings.CutPrefix(line, instruction); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// compile does what the only RUN says, with what .dockerignore leaves of the
// repository, for this machine.
func (d dockerfile) compile(t *testing.T, program string) {
	t.Helper()
	run := d.last("RUN")
	if strings.Count(run, " -o /godwit ") != 1 {
		t.Fatalf("RUN does not write /godwit: %s", run)
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(run, " -o /godwit ", " -o "+program+" "))
	command.Dir = buildContext(t)
	// The context of an image has no repository around it, whose commit go build would read.
	command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "VERSION=v1.2.3", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", run, err, out)
	}
}

// buildContext is a copy of the repository's files, but for the ignored ones. It is in the same folder each time, because
// the build cache knows a package by its folder: in another one, each package of the project compiles again. A folder whose
// name begins with a dot is in no ./... of the repository around it.
func buildContext(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var ignored []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			if !regexp.MustCompile(`^[a-z./]+$`).MatchString(line) {
				t.Fatalf(".dockerignore: %q is no plain name", line)
			}
			ignored = append(ignored, line)
		}
	}
	dir, err := filepath.Abs(filepath.Join(root, "bin", ".buildcontext"))
	if err != nil {
		t.Fatal(err)
	}
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
	remove() // what a test left that was killed
	t.Cleanup(remove)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSpace(file)
		in := func(name string) bool { return file == name || strings.HasPrefix(file, name+"/") }
		if slices.ContainsFunc(ignored, in) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // removed, and git not told yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
