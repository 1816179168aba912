// Command embed-by-object is an operator for Backups that migrates their storage version itself. It names the kinds to
// migrate in Go, as Cluster API's managers do.
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
)

// Permissions of the operator for its own work:
// +kubebuilder:rbac:groups=example.com,resources=backups,verbs=list;watch

// Further permissions for the migration:
// +kubebuilder:rbac:groups=example.com,resources=backups,verbs=list;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=patch,resourceNames=backups.example.com
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=patch,resourceNames=backups.example.com
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
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, addToScheme} {
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
	if err := ctrl.NewControllerManagedBy(mgr).For(&Backup{}).Complete(&reconciler{mgr.GetClient()}); err != nil {
		return err
	}
	if err := (&crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Config: map[client.Object]crdmigrator.ByObjectConfig{
			&Backup{}: {UseCache: true}, // the controller above has its informer
		},
		Settle: settle,
	}).SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// reconciler would run backups; here it only reads them.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, client.IgnoreNotFound(r.Get(ctx, req.NamespacedName, &Backup{}))
}
