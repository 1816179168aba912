package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// ksvm is kube-storage-version-migrator.
type ksvm struct {
	binary, kubeconfig, dir string
	clients                 dynamic.Interface
}

var ksvmMigrations = schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}

func (k ksvm) name() string { return "ksvm" }

// ksvmStart is what the migrator has to fill its cache of migrations, before the time begins.
const ksvmStart = 2 * time.Second

func (k ksvm) prepare(ctx context.Context, r *widget.Resource) (migration, error) {
	child, err := run(k.dir, k.name(), exec.Command(k.binary, "--kubeconfig="+k.kubeconfig))
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case <-child.Exited():
		return nil, fmt.Errorf("%s ended before it was ready:%s", k.name(), child.tail())
	case <-time.After(ksvmStart):
	}
	// The order names the version that its trigger finds in discovery: the one that the API server prefers.
	return &ordered{
		child: child, objects: k.clients.Resource(ksvmMigrations),
		order: newOrder("migration.k8s.io/v1alpha1", r.CRD(), map[string]any{"group": r.Group(), "version": "v2", "resource": widget.Plural}),
	}, nil
}

// installKSVM installs the CRDs of the release that the binary is built from.
func installKSVM(ctx context.Context, plane *controlplane.ControlPlane) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kube-storage-version-migrator")
	list.Dir = filepath.Join(peerModules, "ksvm")
	list.Env = append(os.Environ(), "GOWORK=off")
	folder, err := list.Output()
	if err != nil {
		return fmt.Errorf("find kube-storage-version-migrator: %w", err)
	}
	crds, err := controlplane.ReadCRDs(filepath.Join(strings.TrimSpace(string(folder)), "manifests", "storage_*_crd.yaml"))
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, plane.Config(), crds...)
}
