package crdmigrator_test

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
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
	plan := crdmigrator.PlanFor(crdmigrator.Facts{
		CRD: storedTwice("v1", "v2"),
		Now: now,
		Servers: []crdmigrator.Server{
			{Name: "apiserver-a", Renewed: now},
			{Name: "apiserver-b", Renewed: now.Add(-30 * time.Minute)},
		},
		Denied: []crdmigrator.Grant{{Verb: "patch", Resource: schema.GroupResource{Group: "example.com", Resource: "widgets"}}},
		User:   "operator",
	}, crdmigrator.Policy{})

	fmt.Printf("%s is %s: stored at %v, to be stored at %s\n", plan.Name, plan.State, plan.StoredVersions, plan.StorageVersion)
	for _, b := range plan.Blockers {
		fmt.Println(b.Reason+":", b.Message)
	}
	// Output:
	// widgets.example.com is Blocked: stored at [v1 v2], to be stored at v2
	// Forbidden: operator may not patch widgets.example.com
	// ServerLeaseStale: API server apiserver-b has a stale lease, renewed 30m0s ago, and may still have requests under way that store the old version
}

// Kinds that the operator knows by their Go types, as in Cluster API's managers.
func ExampleCRDMigrator() {
	ctx := context.Background()
	mgr, err := newManager()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = (&crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Config: map[client.Object]crdmigrator.ByObjectConfig{
			&Widget{}: {UseStatusForStorageVersionMigration: true},
		},
		// One object after the other, as Cluster API's migrator goes.
		Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1}),
	}).SetupWithManager(ctx, mgr, controller.Options{})
	fmt.Println("set up:", err == nil)
	// Output:
	// set up: true
}

// CRDs of a group that carry a label, as ToolHive's operator chooses them.
func ExampleCRDMigrator_byLabel() {
	ctx := context.Background()
	mgr, err := newManager()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = (&crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorder("storageversionmigrator"),
		Selector: crdmigrator.Selector{
			Group: "toolhive.stacklok.dev",
			LabelSelector: labels.SelectorFromSet(labels.Set{
				"toolhive.stacklok.dev/auto-migrate-storage-version": "true",
			}),
		},
		// ToolHive's migrator leaves managedFields alone; without this line it takes the right to patch objects.
		SkipCRDMigrationPhases: []crdmigrator.Phase{crdmigrator.CleanupManagedFieldsPhase},
	}).SetupWithManager(ctx, mgr, controller.Options{})
	fmt.Println("set up:", err == nil)
	// Output:
	// set up: true
}

// newManager makes a manager that nobody starts.
func newManager() (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v2"}, &Widget{})
	return manager.New(&rest.Config{}, manager.Options{
		Scheme:     scheme,
		Controller: config.Controller{SkipNameValidation: new(true)}, // two examples in one process
	})
}

// Widget stands for a type of the operator's API.
type Widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
