package operators_test

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
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

// variable is set by `make e2e-operators`.
const variable = "GODWIT_E2E_OPERATORS"

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		fmt.Println("skipped: these tests need a node: run `make e2e-operators`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	controlplane.Parallel(1)
	os.Exit(machine.Main(context.Background(), m, node.Prepare(), prepare))
}

// prepare compiles the program that the tests run.
func prepare(ctx context.Context) error {
	root, err := program.Root(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "bin", "operators"), 0o755); err != nil {
		return err
	}
	_, err = program.Godwit(ctx, filepath.Join(root, "bin", "operators"))
	return err
}

// shared is the cluster of all tests. It ends with the machine.
var shared = sync.OnceValues(func() (*node.Cluster, error) { return node.Start(context.Background(), node.Options{}) })
