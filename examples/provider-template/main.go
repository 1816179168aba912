// Command provider-records is a Crossplane provider for the records of zones.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	v1 "example.com/provider-records/api/v1"
	"example.com/provider-records/record"
	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/externalname/admission"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "provider-records:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "policies" {
		policy, binding, err := admission.Policy("record-names", v1.GroupVersion.WithResource("records"), record.Names)
		if err != nil {
			return err
		}
		return admission.Write(os.Stdout, policy, binding)
	}
	flags := flag.NewFlagSet("provider-records", flag.ContinueOnError)
	api := flags.String("api", "", "URL of the API")
	namespace := flags.String("namespace", "", "namespace of the objects; empty for all")
	poll := flags.Duration("poll", time.Minute, "time between two observations of a resource")
	recovery := flags.Duration("recovery-delay", 30*time.Second, "time after the death of the program in which its requests may still take effect")
	grace := flags.Duration("creation-grace", 30*time.Second, "time after a creation in which the API may not show the resource yet")
	metrics := flags.String("metrics-bind-address", ":8080", "address to serve metrics at; 0 to serve none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return err
	}
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: *metrics}}
	if *namespace != "" {
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}}
	}
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	records := record.Resource(record.Client{URL: *api})
	records.RecoveryDelay = *recovery
	o := xpcontroller.Options{PollInterval: *poll, MaxConcurrentReconciles: 1}
	if err := records.Setup(m, o, managed.WithCreationGracePeriod(*grace)); err != nil {
		return err
	}
	return m.Start(ctx)
}
