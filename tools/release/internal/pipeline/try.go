package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/godwit-dev/godwit/tools/release/internal/command"
)

// crd is a CRD of a release: %s are its versions.
const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [%s]
`

// Try runs the action and the component of a repository on a change that removes the storage version of a CRD, with the release in
// a folder on a server of this machine. Both have to install its program, and to refuse the change.
func Try(ctx context.Context, repository, release, version, temp string) (err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	const headerTimeout = 10 * time.Second
	server := &http.Server{Handler: http.StripPrefix("/"+version, http.FileServerFS(os.DirFS(release))), ReadHeaderTimeout: headerTimeout}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer func() { err = errors.Join(err, server.Close()) }()
	clone, err := change(ctx, filepath.Join(temp, "change"))
	if err != nil {
		return err
	}
	inputs := map[string]string{"files": "crds", "previous": "v1.0.0", "version": version, "downloads": "http://" + listener.Addr().String()}
	for file, run := range map[string]func(context.Context, []byte, Job) (Outcome, error){
		"action.yml":              func(ctx context.Context, text []byte, j Job) (Outcome, error) { return GitHub(ctx, text, "main", j) },
		"templates/crd-check.yml": GitLab,
	} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp(temp, "job-")
		if err != nil {
			return err
		}
		got, err := run(ctx, text, Job{Dir: clone, Temp: dir, Inputs: inputs, Env: append(Runner(), "KUBECONFIG="+os.DevNull)})
		if err == nil && got.Code != 3 {
			err = fmt.Errorf("exit code %d, want 3", got.Code)
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %s", file, err, got.Log)
		}
	}
	return nil
}

// Runner is the environment of a runner of GitHub with Linux, on the processor of this machine. It allows downloads without TLS, as the
// server on this machine has none.
func Runner() []string {
	return []string{"GODWIT_PROTOCOLS==http", "RUNNER_OS=Linux", "RUNNER_ARCH=" + map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH]}
}

// change is a repository whose newest commit removes the storage version of a CRD.
func change(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "crds"), 0o750); err != nil {
		return "", err
	}
	git := func(args ...string) error {
		_, err := command.Command{Dir: dir}.Run(ctx, "git", append([]string{"-c", "user.name=check", "-c", "user.email=check@example.com"}, args...)...)
		return err
	}
	if err := errors.Join(git("init", "--quiet"), git("remote", "add", "origin", dir)); err != nil {
		return "", err
	}
	for _, release := range []struct{ tag, version string }{{"v1.0.0", "v1"}, {"v2.0.0", "v2"}} {
		text := fmt.Sprintf(crd, "{name: "+release.version+", served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}")
		if err := os.WriteFile(filepath.Join(dir, "crds", "widgets.yaml"), []byte(text), 0o600); err != nil {
			return "", err
		}
		if err := errors.Join(git("add", "-A"), git("commit", "--quiet", "-m", release.tag), git("tag", release.tag)); err != nil {
			return "", err
		}
	}
	return dir, nil
}
