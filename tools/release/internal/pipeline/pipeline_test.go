package pipeline_test

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
	"github.com/godwit-dev/godwit/tools/release/internal/pipeline"
)

const (
	root    = "../../../.."
	version = "v0.1.0"
)

// program is a program in the place of godwit: it says what it got, and ends with the exit code in CODE. It refuses a kubeconfig
// that others may read.
const program = `#!/bin/sh
echo "$*" >> "$CALLS"
if [ -n "$KUBECONFIG" ]; then
  [ "$(stat -c %a "$KUBECONFIG")" = 600 ] || exit 99
  cat "$KUBECONFIG" >> "$CALLS"
fi
for one in "$@"; do
  case $one in
  --kubeconfig=*) cat "${one#*=}" >> "$CALLS" ;;
  sarif | junit | markdown) echo "document of $*" ;;
  *) [ ! -f "$one/crd.yaml" ] || cat "$one/crd.yaml" >> "$CALLS" ;;
  esac
done
exit "$CODE"
`

// served serves the files of a release of this machine's platform.
func served(t *testing.T, edit func(files map[string]string)) string {
	t.Helper()
	archive, err := bundle.TarGzip([]bundle.File{{Name: "godwit", Content: []byte(program), Mode: bundle.Executable}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	name := artifact.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}.Archive(artifact.Program, version)
	files := map[string]string{name: string(archive), artifact.Checksums: "0  image/index.json\n" + bundle.Sum(archive) + "  " + name + "\n"}
	edit(files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := files[strings.TrimPrefix(r.URL.Path, "/"+version+"/")]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// checkout is a clone with two commits, of which the first has the tag of a release.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		env := []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
		if _, err := (command.Command{Dir: dir, Env: env}).Run(t.Context(), "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "config", "crd"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config", "crd", "crd.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "--quiet", "-m", text)
	}
	git("init", "--quiet")
	git("remote", "add", "origin", dir)
	write("the old CRD\n")
	git("tag", "v1.0.0")
	git("tag", "1.10")
	write("the new CRD\n")
	return dir
}

// cases are those of the action and of the component.
var cases = map[string]struct {
	reason  string
	inputs  map[string]string
	env     string // is added to that of the runner
	code    string // of godwit
	release func(files map[string]string)
	want    int
	log     string   // is in the log
	calls   []string // are in what godwit got
}{
	"safe for the cluster": {
		inputs: map[string]string{"kubeconfig": "KUBECONFIG"}, code: "0",
		calls: []string{"-f config/crd", "the content of a kubeconfig"},
	},
	"safe after the previous release": {
		inputs: map[string]string{"previous": "v1.0.0"}, code: "0", calls: []string{"crd check ", "the old CRD", "the new CRD"},
	},
	"safe after a release whose name is a number": {
		inputs: map[string]string{"previous": "1.10"}, code: "0", calls: []string{"the old CRD"},
	},
	"refused":                     {inputs: map[string]string{"previous": "v1.0.0"}, code: "3", want: 3, calls: []string{"crd check "}},
	"refused, if only that fails": {inputs: map[string]string{"previous": "v1.0.0", "fail-on": "Refused"}, code: "3", want: 3},
	"unknown":                     {inputs: map[string]string{"previous": "v1.0.0"}, code: "1", want: 1},
	"unknown, if only a refusal fails": {
		inputs: map[string]string{"previous": "v1.0.0", "fail-on": "Refused"}, code: "1", want: 0,
	},
	"an error of the check": {reason: "nothing was checked", inputs: map[string]string{"previous": "v1.0.0"}, code: "2", want: 2, log: "godwit crd check has the exit code 2"},
	"a crash of the check":  {inputs: map[string]string{"previous": "v1.0.0", "fail-on": "Refused"}, code: "139", want: 2, log: "godwit crd check has the exit code 139"},
	"no input":              {reason: "there is nothing to compare with", code: "0", want: 2, log: "Set one of the inputs previous and kubeconfig. If kubeconfig is set: "},
	"both inputs":           {inputs: map[string]string{"previous": "v1.0.0", "kubeconfig": "KUBECONFIG"}, code: "0", want: 2, log: "Set one of the inputs previous and kubeconfig, not both."},
	"a version that leaves the folder of releases": {
		inputs: map[string]string{"previous": "v1.0.0", "version": version + "/../../x"}, code: "0", want: 2, log: "set the input version, such as v0.1.0",
	},
	"a version on two lines": {
		inputs: map[string]string{"previous": "v1.0.0", "version": version + "\nx"}, code: "0", want: 2, log: "set the input version, such as v0.1.0",
	},
	"a release candidate": {
		reason: "it is a release", inputs: map[string]string{"previous": "v1.0.0", "version": "v0.1.0-rc.1"}, code: "0", want: 2, log: "/v0.1.0-rc.1/checksums.txt can't be read.",
	},
	"a ref that does not exist": {inputs: map[string]string{"previous": "v9"}, code: "0", want: 2, log: "v9"},
	"a folder that is new":      {inputs: map[string]string{"previous": "v1.0.0", "files": "charts/crds"}, code: "0", want: 2, log: "v1.0.0 does not have charts/crds."},
	"a changed archive": {
		reason: "it is not run", inputs: map[string]string{"previous": "v1.0.0"}, code: "0", want: 2, log: "and checksums.txt has ",
		release: func(files map[string]string) {
			for name, text := range files {
				if strings.HasSuffix(name, ".gz") {
					files[name] = text + "x"
				}
			}
		},
	},
	"an archive without a checksum": {
		inputs: map[string]string{"previous": "v1.0.0"}, code: "0", want: 2, log: "and checksums.txt has none.",
		release: func(files map[string]string) { files[artifact.Checksums] = "0  other\n" },
	},
	"a server without TLS": {
		inputs: map[string]string{"previous": "v1.0.0"}, env: "GODWIT_PROTOCOLS=", code: "0", want: 2, log: `Protocol "http" `,
	},
	"no such release": {
		inputs: map[string]string{"previous": "v1.0.0"}, code: "0", want: 2, log: "can't be read.",
		release: func(files map[string]string) { clear(files) },
	},
}

// both are the action and the component.
var both = []struct {
	name, file string
	run        func(context.Context, []byte, pipeline.Job) (pipeline.Outcome, error)
}{
	{"GitHub", "action.yml", func(ctx context.Context, text []byte, j pipeline.Job) (pipeline.Outcome, error) {
		return pipeline.GitHub(ctx, text, version, j)
	}},
	{"GitLab", "templates/crd-check.yml", pipeline.GitLab},
}

func TestPipelines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the tests run as on a runner with Linux")
	}
	dir := checkout(t)
	for _, one := range both {
		text, err := os.ReadFile(filepath.Join(root, one.file))
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range cases {
			t.Run(one.name+"/"+name, func(t *testing.T) {
				temp := t.TempDir()
				calls := filepath.Join(temp, "calls")
				inputs := map[string]string{"files": "config/crd", "downloads": served(t, func(files map[string]string) {
					if c.release != nil {
						c.release(files)
					}
				})}
				maps.Copy(inputs, c.inputs)
				if one.name == "GitLab" && inputs["version"] == "" {
					inputs["version"] = version
				}
				if inputs["kubeconfig"] != "" {
					inputs["kubeconfig"] = kubeconfig(t, one.name)
				}
				job := pipeline.Job{Dir: clone(t, dir, "--depth=1"), Temp: temp, Inputs: inputs, Env: append(pipeline.Runner(), "CALLS="+calls, "CODE="+c.code, "KUBECONFIG=", cmp.Or(c.env, "CI=true"))}
				got, err := one.run(t.Context(), text, job)
				if err != nil {
					t.Fatal(err, got.Log)
				}
				if got.Code != c.want || !strings.Contains(got.Log, c.log) {
					t.Errorf("exit code %d, want %d and %q: %s\n%s", got.Code, c.want, c.log, c.reason, got.Log)
				}
				called, _ := os.ReadFile(calls)
				for _, want := range c.calls {
					if !strings.Contains(string(called), want) {
						t.Errorf("godwit got %q, want %q", called, want)
					}
				}
				switch checked := c.want != 2; {
				case checked && !strings.Contains(got.Summary, "document of "):
					t.Errorf("the report is %q", got.Summary)
				case checked && one.name == "GitHub" && !strings.Contains(got.Uploaded, "document of "):
					t.Errorf("code scanning got %q", got.Uploaded)
				case !checked && got.Uploaded != "":
					t.Errorf("nothing was checked, and code scanning got %q", got.Uploaded)
				case !checked && c.code == "0" && len(called) > 0:
					t.Errorf("godwit was called with %q", called)
				}
				if _, err := os.Stat(filepath.Join(temp, "godwit-kubeconfig")); err == nil {
					t.Error("the kubeconfig is left")
				}
			})
		}
	}
}

// kubeconfig is the input: GitHub has the content, and GitLab the file.
func kubeconfig(t *testing.T, of string) string {
	t.Helper()
	const content = "the content of a kubeconfig"
	if of == "GitHub" {
		return content
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// clone is a clone of a repository. A runner has one of the newest commit alone, unless the workflow needs more.
func clone(t *testing.T, of string, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	if _, err := (command.Command{}).Run(t.Context(), "git", append([]string{"clone", "--quiet", "file://" + of, dir}, flags...)...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFullClone: steps after the check may need the history.
func TestFullClone(t *testing.T) {
	for _, one := range both {
		t.Run(one.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, one.file))
			if err != nil {
				t.Fatal(err)
			}
			dir, temp := clone(t, checkout(t)), t.TempDir()
			inputs := map[string]string{"files": "config/crd", "previous": "HEAD", "version": version, "downloads": served(t, func(map[string]string) {})}
			job := pipeline.Job{Dir: dir, Temp: temp, Inputs: inputs, Env: append(pipeline.Runner(), "CALLS="+filepath.Join(temp, "calls"), "CODE=0", "KUBECONFIG=")}
			if got, err := one.run(t.Context(), text, job); err != nil || got.Code != 0 {
				t.Fatal(err, got.Code, got.Log)
			}
			commits, err := (command.Command{Dir: dir}).Run(t.Context(), "git", "rev-list", "--count", "HEAD")
			if err != nil || strings.TrimSpace(commits) != "2" {
				t.Errorf("%v: the clone has %s commits, want 2", err, commits)
			}
		})
	}
}

// TestGitHubRefuses: an action that the workflow names by a branch or a commit needs the input version.
func TestGitHubRefuses(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ ref, os, arch, want string }{
		"a branch":          {"main", "Linux", "X64", "set the input version, such as v0.1.0"},
		"a commit":          {"4f2c1d0", "Linux", "X64", "set the input version"},
		"another system":    {version, "FreeBSD", "X64", "No release is for FreeBSD."},
		"another processor": {version, "Linux", "RISCV", "No release is for RISCV."},
	} {
		t.Run(name, func(t *testing.T) {
			job := pipeline.Job{Dir: t.TempDir(), Temp: t.TempDir(), Inputs: map[string]string{"files": "x"}, Env: []string{"RUNNER_OS=" + c.os, "RUNNER_ARCH=" + c.arch}}
			got, err := pipeline.GitHub(t.Context(), text, c.ref, job)
			if err != nil || got.Code != 2 || !strings.Contains(got.Log, c.want) {
				t.Errorf("%v, exit code %d, want %q:\n%s", err, got.Code, c.want, got.Log)
			}
		})
	}
}

// TestExamples: the examples set inputs that there are, and each that is required.
func TestExamples(t *testing.T) {
	read := func(file string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var workflow struct {
		Jobs map[string]struct {
			If    string
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read("examples/upgrade/ci/github.yaml"), &workflow); err != nil {
		t.Fatal(err)
	}
	const own = "github.event.pull_request.head.repo.full_name == github.repository"
	used := 0
	for name, job := range workflow.Jobs {
		for _, s := range job.Steps {
			if strings.HasPrefix(s.Uses, "godwit-dev/godwit@v") {
				used++
				if err := pipeline.CheckGitHub(read("action.yml"), s.With); err != nil {
					t.Errorf("job %s: %v", name, err)
				}
				if s.With["kubeconfig"] != "" && job.If != own {
					t.Errorf("job %s runs if %q: a pull request of a fork has no secret", name, job.If)
				}
				if upload := s.With["upload"]; upload != "false" && upload != "${{ "+own+" }}" {
					t.Errorf("job %s uploads if %q: a pull request of a fork may not", name, upload)
				}
			}
		}
	}
	var jobs struct {
		Include []struct {
			Remote string
			Inputs map[string]string
		}
	}
	if err := yaml.Unmarshal(read("examples/upgrade/ci/gitlab.yaml"), &jobs); err != nil {
		t.Fatal(err)
	}
	for _, one := range jobs.Include {
		_, file, found := strings.Cut(one.Remote, one.Inputs["version"]+"/")
		if !found {
			t.Fatalf("%s is not of version %s", one.Remote, one.Inputs["version"])
		}
		used++
		if err := pipeline.CheckGitLab(read(file), one.Inputs); err != nil {
			t.Error(err)
		}
	}
	if used != 4 {
		t.Errorf("%d uses were found", used)
	}
}
