package releasecheck_test

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// Before a release that drops v1: what becomes of the cluster?
func ExampleFor() {
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	check := releasecheck.For(releasecheck.Facts{
		Next:   kubetest.Widgets(kubetest.Versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true, Schema: schema})),
		Live:   kubetest.Widgets(),
		DryRun: releasecheck.DryRun{Accepted: true},
	})
	fmt.Println(check.Name, "without", check.RemovedVersions, "is", check.Result)
	for _, r := range check.Reasons {
		fmt.Println(r.Reason.Name + ": " + r.Fix.String())
	}
	// Output:
	// widgets.example.com without [v1] is Refused
	// StoredVersionRemoved: before this release migrate
	// RemovedWhileServed: let a release come first that has it with served: false
}
