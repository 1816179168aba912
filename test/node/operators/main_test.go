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
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/node/operators/writes"
	"github.com/godwit-dev/godwit/test/program"
)

// variable is set by `make e2e-operators`.
const variable = "GODWIT_E2E_OPERATORS"

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		fmt.Println("skipped: these tests need a node and the programs of operators: run `make e2e-operators`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	controlplane.Parallel(1)
	os.Exit(machine.Main(context.Background(), m, node.Prepare(), prepare))
}

// operator is one whose programs and manifests a test installs.
type operator struct {
	// programs of tools/operators, of which images are made.
	programs []string
	// modules have the manifests of releases.
	modules []string
}

var certManager = operator{
	programs: []string{
		"cert-manager-v0.16-controller", "cert-manager-v0.16-webhook",
		"cert-manager-v1.5-controller", "cert-manager-v1.5-webhook", "cert-manager-v1.5-cainjector", "cert-manager-v1.21",
	},
	modules: []string{certManagerOld, certManagerBetween, certManagerNew},
}

// clusterAPI has certificates of cert-manager.
var clusterAPI = operator{
	programs: []string{"cert-manager-v1.21", "cluster-api-v1.10-cluster-api", "cluster-api-v1.14"},
	modules:  []string{certManagerNew, clusterAPIOld, clusterAPINew},
}

// storageVersionMigrator is the module of kube-storage-version-migrator, which has no released version.
const storageVersionMigrator = "sigs.k8s.io/kube-storage-version-migrator@v0.0.6-0.20230721195810-5c8923c5ff96"

var kubeStorageVersionMigrator = operator{
	programs: []string{"kube-storage-version-migrator-migrator"},
	modules:  []string{storageVersionMigrator},
}

// selected returns the operators that the variable selects: all, or none for the tests that need none, or one by its name.
func selected() []operator {
	switch os.Getenv(variable) {
	case "none":
		return nil
	case "cert-manager":
		return []operator{certManager}
	case "cluster-api":
		return []operator{clusterAPI}
	case "kube-storage-version-migrator":
		return []operator{kubeStorageVersionMigrator}
	}
	return []operator{certManager, clusterAPI, kubeStorageVersionMigrator}
}

// prepare makes images and downloads modules, where there is a network.
func prepare(ctx context.Context) error {
	root, err := program.Root(ctx)
	if err != nil {
		return err
	}
	// The tests run this program, which is compiled once.
	if _, err := program.Godwit(ctx, filepath.Join(root, "bin", "operators")); err != nil {
		return err
	}
	if len(selected()) > 0 {
		if _, err := program.Helm(ctx); err != nil {
			return err
		}
	}
	for _, o := range selected() {
		for _, name := range o.programs {
			if err := node.PrepareProgram(ctx, filepath.Join(root, "bin", "operators", name)); err != nil {
				return fmt.Errorf("%w: run `make operators`", err)
			}
		}
		for _, module := range o.modules {
			if _, err := gomodule.Dir(ctx, module); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditLog is the path of the log of the shared cluster, in which are the writes of geese.
func auditLog() string { return filepath.Join(machine.Folder(), "audit.log") }

// shared is the cluster of all tests. It ends with the machine.
var shared = sync.OnceValues(func() (*node.Cluster, error) {
	policy, err := writes.Policy("geese", gooseGroups...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(machine.Folder(), "audit-policy.yaml")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return nil, err
	}
	return node.Start(context.Background(), node.Options{APIServerArgs: []string{"--audit-policy-file=" + file, "--audit-log-path=" + auditLog()}})
})
