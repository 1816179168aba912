package externalname_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	template       = "../../examples/provider-template"
	templateModule = "example.com/provider-records"
)

// fence finds the blocks of Go and of commands in a guide, also those that are indented.
var fence = regexp.MustCompile("(?ms)^ *```(go|console)\n(.*?)\n *```$")

// author is a folder in which an author works.
type author struct {
	t   *testing.T
	dir string
}

// run runs a command as an author does, and returns what it prints.
func (a author) run(goFlags, command string, args ...string) string {
	a.t.Helper()
	c := exec.CommandContext(a.t.Context(), command, args...)
	assets, err := filepath.Abs("../../bin/controlplane")
	if err != nil {
		a.t.Fatal(err)
	}
	c.Dir, c.Env = a.dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+goFlags, "KUBEBUILDER_ASSETS="+assets)
	output, err := c.CombinedOutput()
	if err != nil {
		a.t.Fatalf("$ %s %s\n%s%v", command, strings.Join(args, " "), output, err)
	}
	return string(output)
}

// useClone has the module use this repository in place of a release.
func (a author) useClone() {
	a.t.Helper()
	for module, folder := range map[string]string{
		"github.com/godwit-dev/godwit":                         "../..",
		"github.com/godwit-dev/godwit/externalname/crossplane": "../../externalname/crossplane",
	} {
		at, err := filepath.Abs(folder)
		if err != nil {
			a.t.Fatal(err)
		}
		a.run("", "go", "mod", "edit", "-replace="+module+"="+at)
	}
}

func (a author) write(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// check compares the files of the template with those in the folder, whose module has another path.
func (a author) check(module string) {
	a.t.Helper()
	files, err := exec.CommandContext(a.t.Context(), "git", "ls-files", template).Output()
	if err != nil || len(files) == 0 {
		a.t.Fatalf("files of the template: %q, %v", files, err)
	}
	for name := range strings.FieldsSeq(string(files)) {
		name = strings.TrimPrefix(name, template+"/")
		if name == "go.mod" || name == "go.sum" || name == "README.md" || name == "new.sh" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(template, name))
		if err != nil {
			a.t.Fatal(err)
		}
		want = bytes.ReplaceAll(want, []byte(templateModule), []byte(module))
		if got, err := os.ReadFile(filepath.Join(a.dir, name)); err != nil || !bytes.Equal(got, want) {
			a.t.Errorf("%s is not that of the template: %v", name, err)
		}
	}
}

// The guide for authors, copied from top to bottom, is a provider that passes all checks of the kit. The template has the
// same files.
func TestGuideIsAProvider(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/write-a-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	a := author{t, t.TempDir()}
	files, commands, printed := 0, 0, ""
	for _, block := range fence.FindAllStringSubmatch(string(guide), -1) {
		if block[1] == "go" {
			name, text, _ := strings.Cut(block[2], "\n")
			if name, ok := strings.CutPrefix(name, "// examples/provider-template/"); ok {
				a.write(name, text+"\n")
				files++
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			command, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !isCommand || strings.Contains(command, "new.sh") {
				continue
			}
			words := strings.Fields(command)
			flags := "-mod=mod"
			if words[1] == "test" {
				flags += " -v"
			}
			printed += a.run(flags, words[0], words[1:]...)
			if commands++; words[1] == "mod" && words[2] == "init" {
				a.useClone()
			}
		}
	}
	if files != 5 || commands != 5 {
		t.Errorf("%d files and %d commands, want 5 and 5", files, commands)
	}
	for _, want := range []string{"--- PASS: TestContract", " 0 failed,", " 0 not checked", "10 names, of which admission refuses 0", "10 names, of which admission refuses 10", "ok  \t" + templateModule} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
	a.check(templateModule)
}

// new.sh copies the template, with another module path, and the copy compiles.
func TestTemplateIsCopied(t *testing.T) {
	t.Parallel()
	const module = "git.example.org/team/provider-dns"
	here := author{t, "."}
	a := author{t, filepath.Join(t.TempDir(), "provider-dns")}
	if printed := here.run("", template+"/new.sh", a.dir, module); !strings.Contains(printed, "Next: cd "+a.dir+" && go mod tidy && go generate ./... && go test ./...") {
		t.Errorf("new.sh prints %q", printed)
	}
	a.check(module)
	text, err := os.ReadFile(filepath.Join(a.dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("module "+module+"\n")) || bytes.Contains(text, []byte("godwit")) || bytes.Contains(text, []byte("replace")) {
		t.Errorf("go.mod is\n%s", text)
	}
	a.useClone()
	a.run("-mod=mod", "go", "mod", "tidy")
	a.run("-mod=mod", "go", "vet", "./...")
}

// No CRD to copy requires the status, which no user writes. controller-gen 0.21 makes a field with omitzero required, unless
// it is marked as optional; other versions do not.
func TestStatusIsOptional(t *testing.T) {
	for _, example := range []string{"../../examples/provider-ldap", template} {
		types, err := os.ReadFile(filepath.Join(example, "api", "v1", "types.go"))
		if err != nil {
			t.Fatal(err)
		}
		statuses := regexp.MustCompile(`(?m)^(.*)\n.*json:"(?:status|atProvider),omitzero"`).FindAllSubmatch(types, -1)
		for _, found := range statuses {
			if !bytes.Contains(found[1], []byte("+optional")) {
				t.Errorf("%s: %s", example, found[0])
			}
		}
		crds, err := filepath.Glob(filepath.Join(example, "crds", "*.yaml"))
		if err != nil || len(crds) == 0 || len(statuses) < 2 {
			t.Fatalf("%s: CRDs %v, %d statuses, %v", example, crds, len(statuses), err)
		}
		for _, file := range crds {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if regexp.MustCompile(`(?m)^        required:\n(?:        - \w+\n)*        - status\n`).Match(text) {
				t.Errorf("%s requires the status", file)
			}
		}
	}
}
