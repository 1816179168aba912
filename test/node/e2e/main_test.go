package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

// The versions of the releases that tests install.
const (
	// version is of the working tree.
	version = "v0.2.0"
	// olderThanIt has the image and the chart of the commit before the last change of kindCRD: the next release changes the CRD.
	olderThanIt = "v0.1.0"
	kindCRD     = "charts/godwit/files/crds/godwit.dev_crdmigrations.yaml"
)

// These variables have the folders of the releases that prepare has made.
const (
	releasesVariable      = "GODWIT_E2E_NODE_RELEASES"
	olderReleasesVariable = "GODWIT_E2E_NODE_OLDER_RELEASES"
)

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_NODE") == "" {
		fmt.Println("skipped: these tests need a node and a release: run `make e2e-node`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	controlplane.Parallel(4)
	os.Exit(machine.Main(context.Background(), m, node.Prepare(), prepare))
}

// prepare compiles, where there is a network.
func prepare(ctx context.Context) error {
	if _, err := program.Helm(ctx); err != nil {
		return err
	}
	if os.Getenv("GODWIT_E2E_NODE") != "short" {
		if err := prepareAll(ctx); err != nil {
			return err
		}
	}
	folder, err := program.Releases(ctx, version)
	if err != nil {
		return err
	}
	// The tests install this one, also if the working tree changes meanwhile.
	return os.Setenv(releasesVariable, folder)
}

// prepareAll provides what the short form does not need.
func prepareAll(ctx context.Context) error {
	for _, module := range []string{prometheusOperator, certManager} {
		if _, err := gomodule.Dir(ctx, module); err != nil {
			return err
		}
	}
	if _, err := kubevirtcluster.CRDs(ctx); err != nil {
		return err
	}
	if err := node.PrepareProgram(ctx, "../../../bin/prometheus/prometheus"); err != nil {
		return fmt.Errorf("%w: run `make prometheus`", err)
	}
	folder, err := program.OlderRelease(ctx, kindCRD, olderThanIt)
	if err != nil {
		return err
	}
	return os.Setenv(olderReleasesVariable, folder)
}

// auditPolicy logs writes of objects that exist, and all requests of one hook, without their content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [patch, update]}
- {level: Metadata, users: ["system:serviceaccount:` + hookSucceeds + `:godwit"]}
`

// shared is the cluster of all tests but TestFaults, which disturbs others. Clusters end with the machine.
var shared = sync.OnceValues(func() (*cluster, error) { return startCluster("") })

// cluster is a cluster whose API server has an audit log.
type cluster struct {
	*node.Cluster
	auditLog string
}

// startCluster starts a cluster. Its etcd keeps all revisions, of which tests read what was in between.
func startCluster(name string) (*cluster, error) {
	of := func(file string) string { return filepath.Join(machine.Folder(), "audit"+name+file) }
	if err := os.WriteFile(of(".yaml"), []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	c, err := node.Start(context.Background(), node.Options{Name: name, APIServerArgs: []string{
		"--audit-policy-file=" + of(".yaml"), "--audit-log-path=" + of(".log"), "--etcd-compaction-interval=0",
	}})
	return &cluster{Cluster: c, auditLog: of(".log")}, err
}
