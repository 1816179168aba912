package hub_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if err := replaceRoots(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(controlplane.Main(onSecond{m}, &shared, install))
}

// install installs the CRDs of a hub.
func install(ctx context.Context, cp *controlplane.ControlPlane) error {
	return simulation.InstallCRDs(ctx, cp.Config())
}

// replaceRoots gives this process root certificates that sign nothing, whatever the system has. They are in memory after the first use.
func replaceRoots() error {
	folder, err := os.MkdirTemp("", "godwit-roots-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "roots.pem")
	err = errors.Join(os.WriteFile(file, []byte(unrelatedCA()), 0o600), os.Setenv("SSL_CERT_FILE", file), os.Setenv("SSL_CERT_DIR", folder))
	if err == nil {
		_, err = x509.SystemCertPool()
	}
	return errors.Join(err, os.Unsetenv("SSL_CERT_FILE"), os.Unsetenv("SSL_CERT_DIR"))
}
