// Package crdmigrator_test shows on a real API server and etcd that a migration
// loses nothing. Each test has a CRD of its own on one shared control plane; tests
// that disturb the control plane start another.
package crdmigrator_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// shared is the control plane of the tests that do not disturb it.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // tests read the log of their operator by its own logger
	os.Exit(controlplane.Main(m, &shared))
}
