package ocm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// api is the module of the types and their CRDs. The manifests of the registration controller are templates.
const api = "open-cluster-management.io/api"

// sourceVariable is the environment variable with the folder of the source of managedcluster-import-controller.
const sourceVariable = "IMPORT_CONTROLLER"

// Original is the import controller as its project publishes it.
type Original struct {
	// Source is the folder with its source, which has the CRDs that it needs. Empty means that the controller is simulated.
	Source string
}

// OriginalOf returns the import controller whose source the environment names. Its Source is empty if the environment names none.
func OriginalOf() Original { return Original{Source: os.Getenv(sourceVariable)} }

// registration returns the program that is both the controller of a hub and the agent of a cluster.
func registration() (string, error) { return compiled("registration") }

// compiled returns a program that tools/ocm has compiled.
func compiled(name string) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(root, "bin", "ocm", name)
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("find the program %s of Open Cluster Management: no bin/ocm above the working directory has it: run `make ocm` (minutes, once)", name)
	}
	return program, nil
}

// CRDs returns CRDs of the types that the project publishes, by patterns of their files.
func CRDs(ctx context.Context, patterns ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", api).Output()
	if err != nil {
		return nil, fmt.Errorf("find Go module %s: %w", api, err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range patterns {
		crds, err := controlplane.ReadCRDs(filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		if len(crds) == 0 {
			return nil, fmt.Errorf("read CRDs of Go module %s: none is in %s", api, pattern)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// root returns the folder with go.work.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find go.work above the working directory: run this inside the repository")
		}
		dir = filepath.Dir(dir)
	}
}
