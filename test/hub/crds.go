package hub

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1/crd"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// modelled has CRDs that this project wrote, for kinds whose CRDs are in no module that go.mod can require.
//
//go:embed testdata/crds/*.yaml
var modelled embed.FS

// ocmTypes is the module of Open Cluster Management's types, which has their CRDs. go.mod requires the
// same version.
const ocmTypes = "open-cluster-management.io/api@v1.3.0"

// InstallCRDs installs the CRDs of a hub, which may be the global hub: the CRDs of Open Cluster Management, of
// the kinds that move with a cluster, and of ManagedClusterMigrations. without has the names of CRDs to leave out.
func InstallCRDs(ctx context.Context, config *rest.Config, without ...string) error {
	crds, err := modelledCRDs()
	if err != nil {
		return err
	}
	dir, err := gomodule.Dir(ctx, ocmTypes)
	if err != nil {
		return fmt.Errorf("read the CRDs of Open Cluster Management: %w", err)
	}
	for _, pattern := range []string{
		"cluster/v1/*managedclusters.crd.yaml", "cluster/v1beta1/*placement*.crd.yaml", "cluster/v1beta2/*managedclustersets.crd.yaml",
		"work/v1/*_manifestworks.crd.yaml", "operator/v1/*clustermanagers.crd.yaml", "addon/v1alpha1/*managedclusteraddons.crd.yaml",
	} {
		more, err := controlplane.ReadCRDs(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		crds = append(crds, more...)
	}
	migrations, err := controlplane.DecodeCRDs(crd.ManagedClusterMigrations)
	if err != nil {
		return err
	}
	crds = slices.DeleteFunc(append(crds, migrations...), func(c *apiextensionsv1.CustomResourceDefinition) bool { return slices.Contains(without, c.Name) })
	return controlplane.InstallCRDs(ctx, config, crds...)
}

func modelledCRDs() (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	names, err := modelled.ReadDir("testdata/crds")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		file, err := modelled.ReadFile("testdata/crds/" + name.Name())
		if err != nil {
			return nil, err
		}
		crds, err := controlplane.DecodeCRDs(file)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", name.Name(), err)
		}
		all = slices.Concat(all, crds)
	}
	return all, nil
}
