//go:build linux

package pods_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

// programs are those of Open Cluster Management. Each has an image of its own, which names no program, as those that the project
// publishes.
var programs = []string{"registration-operator", "registration", "work", "placement", "addon"}

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_HUB_PODS") == "" {
		fmt.Println("skipped: these tests need nodes and the programs of Open Cluster Management: run `make e2e-hub-pods`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(machine.Main(context.Background(), m, node.Prepare(), prepare))
}

// prepare makes images and programs, where there is a network.
func prepare(ctx context.Context) error {
	root, err := program.Root(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "bin", "ocm-pods")
	for _, name := range programs {
		if err := node.PrepareWithoutEntrypoint(ctx, filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("%w: run `make e2e-hub-pods`", err)
		}
	}
	// The tests run this program, also if the working tree changes meanwhile.
	if _, err := program.Godwit(ctx, folder); err != nil {
		return err
	}
	if _, err := program.Helm(ctx); err != nil {
		return err
	}
	_, err = chartsFolder(ctx)
	return err
}

// chartsFolder returns the folder with the charts of Open Cluster Management, at the version of the programs.
func chartsFolder(ctx context.Context) (string, error) {
	root, err := program.Root(ctx)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "tools", "ocm"), "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/ocm")
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("find the charts of Open Cluster Management: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "deploy"), nil
}
