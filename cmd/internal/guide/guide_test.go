package guide_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const root = "../../.."

// documents are the Markdown files of a folder below docs.
func documents(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d documents in docs/%s, want at least one: %v", len(files), folder, err)
	}
	return files
}

func TestMain(m *testing.M) {
	controlplane.Parallel(3) // tutorials wait more than they work, and each has a control plane of its own
	code := m.Run()
	if programFolder != "" {
		_ = os.RemoveAll(programFolder)
	}
	os.Exit(code)
}

func TestTutorials(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t, "tutorials") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			run(t, file)
		})
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
	checkSources(t, file, steps)
	if !slices.ContainsFunc(steps, step.isCommand) {
		return
	}
	c := newCluster(t)
	if strings.Contains(string(text), lostServer) {
		c.loseServer()
	}
	if strings.Contains(string(text), instancetypeGroup+"/") {
		c.installKubeVirt()
	}
	if strings.Contains(string(text), thirdPartyGroup) {
		c.installThirdParties()
	}
	if strings.Contains(string(text), directoryGroup) {
		c.installProvider()
	}
	shell := startShell(t, c.dir, c.env)
	for i, s := range steps {
		if s.source != "" {
			continue
		}
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

// checkSources: the Go of a guide is copied from a file that is compiled, and most of it run, by other tests.
func checkSources(t *testing.T, file string, steps []step) {
	t.Helper()
	for _, s := range steps {
		if s.source == "" {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.source)))
		if err != nil {
			t.Errorf("%s:%d: %v", file, s.line, err)
			continue
		}
		if !isPartOf(s.text, string(source)) {
			t.Errorf("%s:%d: %s does not have these lines in a row:\n%s", file, s.line, s.source, s.text)
		}
	}
}
