// Command provider runs the provider.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/controller"
	upjet "github.com/crossplane/upjet/v2/pkg/terraform"
	tfsdk "github.com/hashicorp/terraform-plugin-sdk/v2/terraform"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/examples/provider-upjet/apis"
	"github.com/godwit-dev/godwit/examples/provider-upjet/config"
	generated "github.com/godwit-dev/godwit/examples/provider-upjet/internal/controller"
	"github.com/godwit-dev/godwit/examples/provider-upjet/internal/features"
	"github.com/godwit-dev/godwit/examples/provider-upjet/terraform"
)

type options struct {
	endpoint, metrics, namespace string
	poll                         time.Duration
	contract                     bool
}

func main() {
	var o options
	flag.StringVar(&o.endpoint, "endpoint", "http://localhost:8080", "URL of the service")
	flag.StringVar(&o.metrics, "metrics-bind-address", "0", "address of the metrics; 0 means none")
	flag.StringVar(&o.namespace, "namespace", "", "namespace to watch; empty means all")
	flag.DurationVar(&o.poll, "poll", time.Minute, "time between two observations of a resource")
	flag.BoolVar(&o.contract, "contract", true, "follow the contract of external names; false runs what Upjet generates, unchanged")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

// Reconciliations that begin in a second and that run at the same time, as in Upjet's template of a provider.
const reconcileRate = 10

func run(ctx context.Context, o options) error {
	kubeconfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	watched := cache.Options{}
	if o.namespace != "" {
		watched.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	mgr, err := ctrl.NewManager(kubeconfig, ctrl.Options{Metrics: server.Options{BindAddress: o.metrics}, Cache: watched})
	if err != nil {
		return err
	}
	if err := apis.AddToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	provider, err := config.Provider()
	if err != nil {
		return err
	}
	flags := &feature.Flags{}
	flags.Enable(features.EnableBetaManagementPolicies)
	if o.contract {
		flags.Enable(features.Contract)
	}
	log := logging.NewLogrLogger(ctrl.Log)
	setup := controller.Options{
		Options: xpcontroller.Options{
			Logger: log, PollInterval: o.poll, Features: flags,
			GlobalRateLimiter: ratelimiter.NewGlobal(reconcileRate), MaxConcurrentReconciles: reconcileRate,
		},
		Provider:              provider,
		SetupFn:               setupFor(o.endpoint),
		OperationTrackerStore: controller.NewOperationStore(log),
	}
	if err := generated.Setup(mgr, setup); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// setupFor returns the function that configures the Terraform provider. A provider for more than one endpoint reads the
// ProviderConfig of the managed resource here.
func setupFor(endpoint string) upjet.SetupFn {
	return func(ctx context.Context, _ client.Client, _ resource.Managed) (upjet.Setup, error) {
		configuration := map[string]any{"endpoint": endpoint}
		provider := terraform.Provider()
		if diagnostics := provider.Configure(ctx, tfsdk.NewResourceConfigRaw(configuration)); diagnostics.HasError() {
			return upjet.Setup{}, fmt.Errorf("configure the Terraform provider: %v", diagnostics)
		}
		return upjet.Setup{Configuration: configuration, Meta: provider.Meta()}, nil
	}
}
