package decision_test

import (
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// storedTwice is a CRD that stores v2, and stored v1 before.
func storedTwice(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names:      apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "WidgetList", Plural: "widgets", Singular: "widget"},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			StoredVersions: []string{"v1", "v2"},
			Conditions:     []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}},
		},
	}
	for _, name := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v2",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	return crd
}

// A decision takes facts and nothing else. Here a right is missing, and one API
// server has not been heard of since before the storage version changed.
func ExamplePlanFor() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	plan := decision.PlanFor(decision.Facts{
		CRD: storedTwice("v1", "v2"),
		Now: now,
		Servers: []decision.Server{
			{Name: "apiserver-a", Renewed: now},
			{Name: "apiserver-b", Renewed: now.Add(-30 * time.Minute)},
		},
		Denied: []decision.Grant{{Verb: "patch", Resource: schema.GroupResource{Group: "example.com", Resource: "widgets"}}},
		User:   "operator",
	}, decision.Policy{})

	fmt.Printf("%s is %s: stored at %v, to be stored at %s\n", plan.Name, plan.State, plan.StoredVersions, plan.StorageVersion)
	for _, b := range plan.Blockers {
		fmt.Println(b.Line())
	}
	// Output:
	// widgets.example.com is Blocked: stored at [v1 v2], to be stored at v2
	// Forbidden: operator may not patch widgets.example.com
	// ServerLeaseStale: API server apiserver-b has a stale lease, renewed 30m0s ago, and may still have requests under way that store the old version
}
