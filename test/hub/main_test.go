package hub_test

import (
	"context"
	"os"
	"testing"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// shared is the control plane of all tests. Each test has a namespace of its own.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &shared, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		file, err := os.ReadFile("../../hub/api/v1alpha1/crd/global-hub.open-cluster-management.io_managedclustermigrations.yaml")
		if err != nil {
			return err
		}
		crds, err := controlplane.DecodeCRDs(file)
		if err != nil {
			return err
		}
		return controlplane.InstallCRDs(ctx, cp.Config(), crds...)
	}))
}
