package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
)

// TestGuide runs each command of docs/guides/move-clusters.md. The harness plays the Deployments of the manager and of the agents.
func TestGuide(t *testing.T) {
	in := install(t)
	clusters := importSites(t, in.fleet, "guide-1", "guide-2", "guide-3")
	moves, waits, first := clusters[0], clusters[1], clusters[2]
	beforeFirst := onHub(t, in.hub1, first.Name)
	before, stayed := onHub(t, in.hub1, moves.Name), onHub(t, in.hub1, waits.Name)
	waits.CutOff(in.hub2) // so that its migration lasts until a user aborts it
	aborted := in.migrate(t, "guide-aborted", nil, waits.Name)
	aborted.mustReach(api.PhaseInitializing) // the manager has heartbeats of both agents, which the plan of the guide needs

	dir := t.TempDir()
	contexts, err := in.writeContexts(dir)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join("..", "..", "..", "docs", "guides", "move-clusters.md"), Dir: dir,
		Env: append(os.Environ(), "KUBECONFIG="+contexts, "HOME="+t.TempDir(), "PATH="+in.folder+":"+kubectlFolder(t)+":"+os.Getenv("PATH")),
		Placeholders: map[string]string{
			"GLOBAL": "global", "FROM": "hub1", "TO": "hub2", "CLUSTER": moves.Name, "MIGRATION": "guide", "ABORTED": "guide-aborted", "FIRST": first.Name,
		},
	})
	if err != nil || commands < 16 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}
	awaitRegistered(t, in.hub1, waits.Name)
	mustBeBack(t, in.fleet, stayed, waits.Name)
	mustHaveMoved(t, in.fleet, before, moves)
	mustHaveMoved(t, in.fleet, beforeFirst, first)
}

// kubectlFolder is the folder with kubectl.
func kubectlFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder != "" {
		return folder
	}
	folder, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// writeContexts writes a kubeconfig with a context for each hub, and one for the global hub.
func (in *installation) writeContexts(dir string) (file string, err error) {
	file = filepath.Join(dir, "kubeconfig")
	return file, controlplane.WriteContexts(file, "", map[string]*rest.Config{"global": in.hub1.Config(), in.hub1.Name: in.hub1.Config(), in.hub2.Name: in.hub2.Config()})
}
