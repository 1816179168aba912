package hub_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// shared is the control plane of all tests, and second is a target hub. Each test has names of
// its own.
var shared, second *controlplane.ControlPlane

// onSecond runs the tests beside a second control plane.
type onSecond struct{ *testing.M }

func (m onSecond) Run() int { return controlplane.Main(m.M, &second, install) }

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(onSecond{m}, &shared, install))
}

// install installs the CRDs of a hub.
func install(ctx context.Context, cp *controlplane.ControlPlane) error {
	file, err := os.ReadFile("../../hub/api/v1alpha1/crd/global-hub.open-cluster-management.io_managedclustermigrations.yaml")
	if err != nil {
		return err
	}
	crds, err := controlplane.DecodeCRDs(file)
	if err != nil {
		return err
	}
	ours, err := controlplane.ReadCRDs("testdata/crds/*.yaml")
	if err != nil {
		return err
	}
	ocm, err := ocmCRDs(ctx)
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, cp.Config(), slices.Concat(crds, ours, ocm)...)
}

// ocmCRDs are those of Open Cluster Management, from the module of its types.
func ocmCRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range []string{
		"cluster/v1/*managedclusters.crd.yaml", "cluster/v1beta1/*placement*.crd.yaml", "work/v1/*_manifestworks.crd.yaml", "operator/v1/*clustermanagers.crd.yaml", "addon/v1alpha1/*_managedclusteraddons.crd.yaml",
	} {
		crds, err := controlplane.ReadCRDs(filepath.Join(strings.TrimSpace(string(dir)), pattern))
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}
