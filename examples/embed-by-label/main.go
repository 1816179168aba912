// Command embed-by-label is an operator for Pipelines that migrates their storage version itself. A label on the CRD
// selects it for migration, as in ToolHive's operator.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/crdmigrator"
	ci "github.com/godwit-dev/godwit/examples/embed-by-label/api/v2"
)

// Permissions of the operator for its own work:
// +kubebuilder:rbac:groups=ci.example.com,resources=pipelines,verbs=list;watch

// Further permissions for the migration. The labels in the cluster select the kinds, hence the wildcard:
// +kubebuilder:rbac:groups=ci.example.com,resources=*,verbs=get;list;update;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list,namespace=kube-system
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list,namespace=default
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list

func main() {
	metrics := flag.String("metrics-bind-address", ":8080", "address to serve metrics at; 0 to serve none")
	settle := flag.Duration("settle", 0, "time from the change of a storage version to the first write; 0 for 75s")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *metrics, *settle); err != nil {
		ctrl.Log.Error(err, "the operator ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, metrics string, settle time.Duration) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, ci.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: metrics},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&ci.Pipeline{}).Complete(&reconciler{mgr.GetClient()}); err != nil {
		return err
	}
	if err := (&crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Selector:  crdmigrator.Selector{Group: "ci.example.com"}, // and the default label, which api/v2 sets
		Recorder:  mgr.GetEventRecorder("embed-by-label"),
		Settle:    settle,
	}).SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// reconciler would run pipelines; here it only reads them.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, client.IgnoreNotFound(r.Get(ctx, req.NamespacedName, &ci.Pipeline{}))
}
