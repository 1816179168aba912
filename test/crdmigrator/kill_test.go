package crdmigrator_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/program"
)

const kills = 20

// TestKilledRunsWriteNoObjectTwice kills `godwit crd run` of one CRD twenty times,
// each time after it has written some objects.
func TestKilledRunsWriteNoObjectTwice(t *testing.T) {
	t.Parallel()
	const perRun = 20
	const objects = (kills + 1) * 4 * perRun // a kill comes late on a busy machine
	w := newWidgets(t, shared)
	w.fill("v1", objects)
	w.flip()
	godwit := w.commands()

	for kill := range kills {
		written := w.watchWrites()
		run := godwit("crd", "run", w.name, "--yes", "--settle=0s", "--max-writes-per-second=25")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		exited := make(chan error, 1)
		go func() { exited <- run.Wait() }()
		deadline := time.After(awaitLimit)
		for n := 0; n < perRun; {
			select {
			case answer := <-written:
				n += len(answer.Events)
			case err := <-exited:
				t.Fatalf("run %d ended before it was killed: %v\n%s", kill, err, run.Stderr)
			case <-deadline:
				t.Fatalf("run %d wrote %d objects within %v, want %d:\n%s", kill, n, awaitLimit, perRun, run.Stderr)
			}
		}
		if err := run.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-exited
		if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; !ok {
			t.Fatalf("no checkpoint after kill %d, although objects were written", kill)
		}
		w.mustHaveStoredVersions("after a kill", "v1,v2")
	}

	last := godwit("crd", "run", w.name, "--yes", "--settle=0s")
	if err := last.Run(); err != nil {
		t.Fatalf("the run after %d kills: %v\n%s", kills, err, last.Stderr)
	}
	w.mustBeStored("in the end", map[string]int{"v2": objects})
	w.mustHaveStoredVersions("in the end", "v2")
	w.mustBeWrittenOnce()
}

// watchWrites returns the writes of objects from now on, as etcd has them.
func (w *widgets) watchWrites() clientv3.WatchChan {
	w.t.Helper()
	now, err := w.plane.Etcd().Get(w.t.Context(), w.key(""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	return w.plane.Etcd().Watch(w.t.Context(), w.key(""), clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
}

// mustBeWrittenOnce checks that each key in etcd was written twice: once when it was
// created, and once when it was migrated.
func (w *widgets) mustBeWrittenOnce() {
	w.t.Helper()
	pairs, err := w.plane.Etcd().Get(w.t.Context(), w.key(""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kv := range pairs.Kvs {
		if kv.Version != 2 {
			w.t.Errorf("%s was written %d times, want its creation and one migration", kv.Key, kv.Version)
		}
	}
}

// buildGodwit compiles the command once for all tests of this package.
var buildGodwit = sync.OnceValues(func() (string, error) {
	return program.Godwit(context.Background(), shared.Dir()) // deleted with the control plane
})

// commands returns a function that makes godwit commands against the test's control
// plane, which keep their standard error.
func (w *widgets) commands() func(args ...string) *exec.Cmd {
	w.t.Helper()
	binary, err := buildGodwit()
	if err != nil {
		w.t.Fatal(err)
	}
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, w.config); err != nil {
		w.t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		command := exec.Command(binary, args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		command.Stderr = &strings.Builder{}
		return command
	}
}
