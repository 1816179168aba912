package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/jobservice"
	jobprovider "github.com/godwit-dev/godwit/test/jobservice/provider"
	"github.com/godwit-dev/godwit/test/slapd"
)

// shared is the control plane of all tests. Each test has a namespace, a directory and a manager of
// its own.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	jobservice.Main()
	if os.Getenv(commandVariable) != "" {
		os.Exit(providerCommand())
	}
	log.SetLogger(logr.Discard())
	_ = os.Setenv("LDAP_PASSWORD", slapd.Password) // of exports that need no cluster
	code := controlplane.Main(m, &shared,
		func(ctx context.Context, cp *controlplane.ControlPlane) error {
			databases, err := jobprovider.CRDs()
			if err != nil {
				return err
			}
			list := append(providerCRDs(), crd("Person", "persons"), crd("Membership", "memberships"))
			return controlplane.InstallCRDs(ctx, cp.Config(), append(list, databases...)...)
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

// providerCommand is the main function of examples/provider-ldap.
func providerCommand() int {
	err := provider.Command(ctrl.GetConfig).ExecuteContext(context.Background())
	var exit *provider.ExitError
	switch {
	case errors.As(err, &exit):
		return int(exit.Code)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}
