package crdmigrator_test

import (
	"context"
	"fmt"

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

// newManager makes a manager that is not started.
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
