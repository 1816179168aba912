package externalname_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// shared is the control plane of all tests. Each test has a namespace, a directory and a manager of
// its own.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		_ = flag.Set("test.parallel", "8") // these tests wait more than they work
	}
	log.SetLogger(logr.Discard())
	code := controlplane.Main(m, &shared,
		func(ctx context.Context, cp *controlplane.ControlPlane) error {
			list := append(providerCRDs(), crd("Person", "persons"), crd("Membership", "memberships"))
			return controlplane.InstallCRDs(ctx, cp.Config(), list...)
		},
		func(ctx context.Context, _ *controlplane.ControlPlane) error { return startServer(ctx) },
	)
	if server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
