// Package revision_test shows on a real API server that an upgrade of stored
// objects loses no reference, wherever it is interrupted.
package revision_test

import (
	"context"
	"flag"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// shared is the control plane; each test has a namespace of its own.
var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(controlplane.Main(m, &shared, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return controlplane.InstallCRDs(ctx, cp.Config(),
			define("presets", "Preset", "v2", "v1"), define("profiles", "Profile", "v2", "v1"), define("workloads", "Workload", "v1"))
	}))
}

// define is a CRD that stores the first version.
func define(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + testGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: testGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		})
	}
	return crd
}
