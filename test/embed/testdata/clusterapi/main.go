// Command provider has a controller for Machines and migrates Cluster API's CRDs, as the managers of Cluster API's releases
// do.
package main

import (
	"context"
	"flag"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	skip := flag.String("skip-crd-migration-phases", "", "comma-separated: StorageVersionMigration, CleanupManagedFields")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *skip); err != nil {
		ctrl.Log.Error(err, "provider ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, skip string) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := setupMachines(ctx, mgr); err != nil {
		return err
	}
	var phases []crdmigrator.Phase
	for phase := range strings.FieldsFuncSeq(skip, func(r rune) bool { return r == ',' }) {
		phases = append(phases, crdmigrator.Phase(phase))
	}
	if err := (&crdmigrator.CRDMigrator{
		Client:                 mgr.GetClient(),
		APIReader:              mgr.GetAPIReader(),
		SkipCRDMigrationPhases: phases,
		Config: map[client.Object]crdmigrator.ByObjectConfig{
			&clusterv1.Cluster{}:            {UseCache: true},
			&clusterv1.Machine{}:            {UseCache: true, UseStatusForStorageVersionMigration: true},
			&clusterv1.MachineHealthCheck{}: {},
		},
	}).SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 1}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// setupMachines sets up the provider's own controller.
func setupMachines(ctx context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&clusterv1.Machine{}).
		WithEventFilter(predicates.ResourceNotPaused(mgr.GetScheme(), ctrl.LoggerFrom(ctx))).
		Complete(&machines{mgr.GetClient()})
}

type machines struct{ client.Client }

func (r *machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var machine clusterv1.Machine
	return ctrl.Result{}, client.IgnoreNotFound(r.Get(ctx, req.NamespacedName, &machine))
}
