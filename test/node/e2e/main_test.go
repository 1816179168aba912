package e2e_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

// The versions of the releases that tests install. Both are of the working tree: there is no release of another tree.
const (
	version     = "v0.2.0"
	olderThanIt = "v0.1.0"
)

// releasesVariable has the folder of the releases that prepare has made.
const releasesVariable = "GODWIT_E2E_NODE_RELEASES"

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_NODE") == "" {
		fmt.Println("skipped: these tests need a node and a release: run `make e2e-node`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	controlplane.Parallel(3)
	os.Exit(machine.Main(context.Background(), m, node.Prepare(), prepare))
}

// prepare compiles, where there is a network.
func prepare(ctx context.Context) error {
	if _, err := program.Helm(ctx); err != nil {
		return err
	}
	versions := []string{version}
	if os.Getenv("GODWIT_E2E_NODE") != "short" {
		versions = append(versions, olderThanIt)
		if _, err := gomodule.Dir(ctx, prometheusOperator); err != nil {
			return err
		}
		if err := node.PrepareProgram(ctx, "../../../bin/prometheus/prometheus"); err != nil {
			return fmt.Errorf("%w: run `make prometheus`", err)
		}
	}
	folder, err := program.Releases(ctx, versions...)
	if err != nil {
		return err
	}
	// The tests install these, also if the working tree changes meanwhile.
	return os.Setenv(releasesVariable, folder)
}

// shared is the cluster of all tests. It ends with the machine.
var shared = sync.OnceValues(func() (*node.Cluster, error) { return node.Start(context.Background(), node.Options{}) })
