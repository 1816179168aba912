package hub_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/controlplane"
	simulation "github.com/godwit-dev/godwit/test/hub"
)

// shared is the control plane of all tests, and second is a target hub. Each test has names of
// its own.
var shared, second *controlplane.ControlPlane

// onSecond runs the tests beside a second control plane.
type onSecond struct{ *testing.M }

func (m onSecond) Run() int {
	code := controlplane.Main(m.M, &second, install)
	if err := startedPlanes.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(onSecond{m}, &shared, install))
}

// install installs the CRDs of a hub.
func install(ctx context.Context, cp *controlplane.ControlPlane) error {
	return simulation.InstallCRDs(ctx, cp.Config())
}
