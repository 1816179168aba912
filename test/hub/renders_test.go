package hub_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// TestRenders: the simulated import controller of these tests, of the demo and of the benchmark writes what the original has written into the
// golden file, as far as a migration depends on it; and a pass that has nothing to change writes nothing.
//
// Matrix: H138.
func TestRenders(t *testing.T) {
	t.Parallel()
	s := newSite(t) // for the namespace of the bootstrap secrets
	s.freezes = true
	golden, err := os.ReadFile("klusterlet/testdata/import-controller.txt")
	if err != nil {
		t.Fatal(err)
	}
	renders := klusterlet.Renders{Hub: s.c, BootstrapNamespace: bootstrapNamespace, Name: "renders", Pass: func(ctx context.Context, mc *clusterv1.ManagedCluster) error {
		before, err := s.importer().Configure(ctx, mc)
		if err != nil {
			return err
		}
		after, err := s.importer().Configure(ctx, mc)
		if err == nil && (before.CRDs.Generation != after.CRDs.Generation || before.Klusterlet.Generation != after.Klusterlet.Generation) {
			t.Errorf("a second pass over %s has changed a ManifestWork", mc.Name)
		}
		return err
	}}
	text, err := renders.Text(t.Context(), string(golden), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text); diff != "" {
		t.Errorf("the works (-golden +got):\n%s", diff)
	}
}
