package guide_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const guides = "../../../docs/guides"

func TestGuides(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(guides, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d guides in %s, want at least one: %v", len(files), guides, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) { run(t, file) })
	}
}

// run ends at the first command that does something else than the guide says:
// those after it would only add noise.
func run(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := checkProse(string(text), steps); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	c := newCluster(t)
	shell := startShell(t, c.dir, c.env)
	for i, s := range steps {
		if s.file != "" {
			if err := os.WriteFile(filepath.Join(c.dir, s.file), []byte(s.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		printed, code := shell.run(s.text)
		t.Logf("$ %s\n%s[exit code %d]", s.text, printed, code)
		if !matches(s.want, printed) {
			t.Fatalf("%s:%d: `%s` printed\n%s\nand the guide says\n%s", file, s.line, s.text, printed, s.want)
		}
		followed := i+1 < len(steps) && steps[i+1].text == "echo $?"
		if code != 0 && !followed {
			t.Fatalf("%s:%d: `%s` exits with %d; let `echo $?` follow if that is meant", file, s.line, s.text, code)
		}
	}
}
