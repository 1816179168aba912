// Package upgrade_test upgrades what KubeVirt has stored, on a real API server that
// has KubeVirt's CRDs. After every single write each reference must lead to a
// revision that can be read.
//
// Read namespace_test.go (a test's namespace) and referencelog_test.go (who refers to what, and
// whether it resolves), then matrix_test.go (each fixture, referred to in each way) and
// virtcontroller_test.go (what KubeVirt's controllers do meanwhile).
package upgrade_test

import (
	"context"
	"os"
	"testing"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// shared is the control plane; each test has a namespace of its own.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &shared, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return cluster.Install(ctx, cp.Config())
	}))
}
