package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newRepository has a workspace of modules like ours, in one commit.
func newRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"go.work":                  "go 1.26.0\n\nuse (\n\t.\n\t./bench\n\t./cmd\n\t./externalname/crossplane\n\t./test\n)\n",
		"LICENSE":                  "license\n",
		".gitignore":               "/dist/\n",
		"godwit.go":                "package godwit\n",
		"cmd/godwit/main.go":       "package main\n\nfunc main() {}\n",
		"charts/godwit/Chart.yaml": "apiVersion: v2\nname: godwit\nversion: 0.0.0\nappVersion: 0.0.0\n",
	}
	for folder, text := range goMods() {
		files[filepath.Join(folder, "go.mod")] = strings.ReplaceAll(string(text), "\tgithub.com/spf13/cobra v1.10.2\n", "")
		files[filepath.Join(folder, "go.sum")] = ""
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message=all")
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(),
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com",
		"GIT_AUTHOR_DATE=1777896000 +0200", "GIT_COMMITTER_DATE=1777896001 +0200", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func mustMake(t *testing.T, origin string) *Release {
	t.Helper()
	r, err := Make(t.Context(), origin, "v0.1.0", filepath.Join(t.TempDir(), "source"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMake: everyone makes the same commit, also from the tag. The repository does not change, except that it has the
// commit to tag.
func TestMake(t *testing.T) {
	origin := newRepository(t)
	head := git(t, origin, "rev-parse", "HEAD")
	first, second := mustMake(t, origin), mustMake(t, origin)
	if first.Commit != second.Commit || first.Commit == head {
		t.Errorf("commits %s and %s, from %s", first.Commit, second.Commit, head)
	}
	if got := first.Time.Unix(); got != 1777896001 {
		t.Errorf("the time is %d, want that of the committer", got)
	}
	if err := first.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := git(t, origin, "rev-parse", "HEAD", first.Commit+"^"); got != head+"\n"+head {
		t.Errorf("HEAD and the parent of the release are %s, want %s", got, head)
	}
	if got := git(t, origin, "status", "--porcelain") + git(t, origin, "tag"); got != "" {
		t.Errorf("the repository has %q", got)
	}
	if got, want := git(t, origin, "diff", "--name-only", head, first.Commit), "charts/godwit/Chart.yaml\ncmd/go.mod\ncmd/go.sum"; got != want {
		t.Errorf("the release changes %q, want %q", got, want)
	}
	for line := range strings.Lines(string(first.Tags())) {
		tag, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		git(t, origin, "tag", tag, commit)
	}
	git(t, origin, "checkout", "--quiet", "cmd/v0.1.0")
	if third := mustMake(t, origin); third.Commit != first.Commit {
		t.Errorf("from the tag the commit is %s, want %s", third.Commit, first.Commit)
	}
}

// TestProxy: the go command gets the program from the folder, and its go.sum has the checksums that the go command finds.
func TestProxy(t *testing.T) {
	r := mustMake(t, newRepository(t))
	proxy, dir := t.TempDir(), t.TempDir()
	if err := r.WriteProxy(proxy); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "GOPROXY=file://"+proxy, "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0",
		"GOFLAGS=-modcacherw", "GOPATH="+filepath.Join(dir, "gopath"), "GOMODCACHE="+filepath.Join(dir, "modules"))
	for _, c := range []struct {
		dir  string
		args []string
	}{
		{dir, []string{"install", "github.com/godwit-dev/godwit/cmd/godwit@v0.1.0"}},
		{filepath.Join(r.Dir, "cmd"), []string{"mod", "download", "-x"}},
		{filepath.Join(r.Dir, "cmd"), []string{"mod", "verify"}},
	} {
		command := exec.CommandContext(t.Context(), "go", c.args...)
		command.Dir, command.Env = c.dir, environment
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", c.args, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "modules", "github.com", "godwit-dev", "godwit", "cmd@v0.1.0", "LICENSE")); err != nil {
		t.Errorf("a module in a folder has no license: %v", err)
	}
}

func TestMakeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, origin string)
		want  string
	}{
		"a changed file": {func(t *testing.T, origin string) {
			t.Helper()
			write(t, filepath.Join(origin, "godwit.go"), "package g\n")
		},
			"the tree is dirty (M godwit.go)"},
		"new files": {func(t *testing.T, origin string) {
			t.Helper()
			write(t, filepath.Join(origin, "a.go"), "")
			write(t, filepath.Join(origin, "b.go"), "")
		}, "the tree is dirty (?? a.go and 1 more)"},
		"a tag": {func(t *testing.T, origin string) { t.Helper(); git(t, origin, "tag", "v0.1.0") }, "tag v0.1.0 exists on commit"},
		"an annotated tag of one module": {func(t *testing.T, origin string) {
			t.Helper()
			git(t, origin, "tag", "--annotate", "--message=old", "cmd/v0.1.0")
		}, "tag cmd/v0.1.0 exists on commit"},
		"a replace line of a foreign module": {func(t *testing.T, origin string) {
			t.Helper()
			write(t, filepath.Join(origin, "externalname", "crossplane", "go.mod"), adapter+"\nreplace example.com/a => ./a\n")
			git(t, origin, "commit", "--quiet", "--all", "--message=replace")
		}, "externalname/crossplane/go.mod replaces example.com/a"},
	} {
		t.Run(name, func(t *testing.T) {
			origin := newRepository(t)
			c.spoil(t, origin)
			_, err := Make(t.Context(), origin, "v0.1.0", filepath.Join(t.TempDir(), "source"))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
