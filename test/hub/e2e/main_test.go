package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// patience is for a busy machine.
const patience = 4 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_HUB") == "" {
		fmt.Println("skipped: these tests need Apache Kafka and Open Cluster Management: run `make e2e-hub`")
		return
	}
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if err := errors.Join(installed.stop(), installedPlain.stop(), shared.stop(), originals.stop(), plains.stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fleet is two hubs, and the API server of the clusters that move between them.
type fleet struct {
	hub1, hub2 *ocm.Hub
	spoke      *ocm.Spoke
}

// shared is the fleet of all tests. Each test imports clusters of its own.
var shared fleet

var startShared = sync.OnceValue(func() error {
	ctx := context.Background()
	crds, err := controlplane.ReadCRDs("../testdata/crds/*.yaml")
	if err != nil {
		return err
	}
	// At first, no hub has ManagedServiceAccounts; see serveAccounts.
	crds = slices.DeleteFunc(crds, isAccounts)
	for name, h := range map[string]**ocm.Hub{"hub1": &shared.hub1, "hub2": &shared.hub2} {
		if *h, err = ocm.StartHub(ctx, name, ocm.HubOptions{CRDs: crds}); err != nil {
			return err
		}
		if err := (*h).Client.Create(ctx, &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: clusterManager}}); err != nil {
			return err
		}
	}
	shared.spoke, err = ocm.StartSpoke(ctx)
	return err
})

func startFleet(t *testing.T) fleet {
	t.Helper()
	if err := startShared(); err != nil {
		t.Fatal(err)
	}
	return shared
}

// clusterManager is the only ClusterManager of a hub, by which migrations let a hub approve requests.
const clusterManager = "cluster-manager"

// stop ends the clusters first, since their agents would look for another hub.
func (f fleet) stop() error {
	var errs []error
	if f.spoke != nil {
		errs = append(errs, f.spoke.Stop())
	}
	for _, h := range []*ocm.Hub{f.hub1, f.hub2} {
		if h != nil {
			errs = append(errs, h.Stop())
		}
	}
	return errors.Join(errs...)
}
